#!/usr/bin/env python3
"""Fifty sleepers and one job: one of them comes. And a sleeper costs next to nothing, whatever stands in its queue that it may not have."""
import os
import time

from sessions import MOST, Admin, Session, comes, end, ok, run_all, same, tell

SLEEPERS = 50
SECONDS = 3.0


def fresh(admin):
    admin.run("SELECT jobq.drop_queue('q', true) FROM jobq.queues WHERE queue = 'q'")
    admin.run("SELECT jobq.create_queue('q')")


def enqueue(admin, jobs=1):
    admin.run("SELECT FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, %s) AS n), queue => 'q')", jobs)


def processor_time(sessions):
    """Of their processes, in seconds."""
    ticks = 0
    for session in sessions:
        with open(f'/proc/{session.pid}/stat') as file:
            fields = file.read().rsplit(')', 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf('SC_CLK_TCK')


def no_herd():
    admin = Admin()
    fresh(admin)
    sleepers = admin.sleepers(SLEEPERS)
    for woken in range(1, 6):
        enqueue(admin)
        ok(comes(lambda: sum(s.is_done() for s in sleepers) >= woken, MOST), f'one job wakes one of {SLEEPERS}')
    comes(lambda: sum(s.is_done() for s in sleepers) > 5, 1)
    same([s.is_done() for s in sleepers], [True] * 5 + [False] * (SLEEPERS - 5), 'the others sleep on; those who came first are gone')
    same([s.result(0) for s in sleepers[:5]], [True] * 5, 'and have been told')
    admin.run("SELECT FROM jobq.claim('q', 100)")
    # when they all have a job they all come
    enqueue(admin, SLEEPERS)
    same([s.result(MOST) for s in sleepers[5:]], [True] * (SLEEPERS - 5), f'a batch of {SLEEPERS} wakes all')


def costs_nothing(admin, what, limit=0.1):
    """Twenty sleepers. A loop without a rest would take all the time of all processors; each may take a tenth of one."""
    sleepers = admin.sleepers(20)
    before = processor_time(sleepers)
    began = time.monotonic()
    time.sleep(SECONDS)
    took = (processor_time(sleepers) - before) / (time.monotonic() - began) / len(sleepers)
    ok(took < limit, f'{what}: a sleeper sleeps', f'{took:.4f} of a processor each')
    ok(not any(s.is_done() for s in sleepers), f'{what}: and is told of nothing')
    tell(f'{what}: {took:.5f} of a processor each', loud=False)
    return sleepers


def no_spin():
    admin, taker = Admin(), Session()
    fresh(admin)
    enqueue(admin, 5)
    admin.run("SELECT jobq.pause_queue('q')")
    paused = costs_nothing(admin, 'a paused queue with ready jobs', 0.02)
    admin.run("SELECT jobq.resume_queue('q')")
    same([s.result(MOST) for s in paused], [True] * 20, 'when it is resumed, all who wait are told')

    fresh(admin)
    enqueue(admin, 5)
    taker.run('SET jobq.claim_in_transaction = allow')
    taker.run('BEGIN')
    taker.run("SELECT FROM jobq.claim('q', 5)")
    held = costs_nothing(admin, 'a queue whose jobs another has', 0.02)
    taker.run('ROLLBACK')
    ok(comes(lambda: sum(s.is_done() for s in held) >= 5, MOST), 'when he gives them back, as many are told')
    comes(lambda: sum(s.is_done() for s in held) > 5, 0.5)
    same(sum(s.is_done() for s in held), 5, 'and no more')
    end(*paused, *held)

    fresh(admin)
    enqueue(admin, 150)
    taker.run('BEGIN')
    same(len(taker.run("SELECT job_id FROM jobq.claim('q', 149)")), 149, 'a crowd of jobs that another has, and one behind it')
    behind = costs_nothing(admin, 'a job behind a crowd')
    taker.run('COMMIT')
    same([s.result(MOST) for s in behind], [True] * 20, 'when the crowd is gone, it is found')


def asked_too_often():
    """Wakes for nothing are rests again: somebody else is always faster."""
    admin = Admin()
    fresh(admin)
    sleepers = admin.sleepers(5)
    for _ in range(200):
        admin.run("DO $$ BEGIN PERFORM jobq.enqueue('t', queue => 'q'); PERFORM FROM jobq.claim('q'); END $$")
    comes(lambda: any(s.is_done() for s in sleepers), 0.3)
    ok(not any(s.is_done() for s in sleepers), 'a job that is claimed in the transaction that made it is none for the sleepers')
    enqueue(admin)
    ok(comes(lambda: sum(s.is_done() for s in sleepers) == 1, MOST), 'and they are still there for the next one')


if __name__ == '__main__':
    setup = Admin()
    setup.run("ALTER SYSTEM SET jobq.claim_in_transaction = 'allow'")
    setup.run('SELECT pg_reload_conf()')
    setup.close()
    run_all([no_herd, no_spin, asked_too_often])
