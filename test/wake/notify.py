#!/usr/bin/env python3
"""What LISTEN costs: nothing in a producer's commit, one NOTIFY for a queue that nobody claims from, few for a busy one."""
import select
import time

import psycopg

from sessions import DEADLINE, MOST, Admin, Session, comes, ok, run_all, same, tell, until

# the manager's pace: once in 50 ms, after a silence four times at once
INTERVAL, BURST = 0.05, 4


class Listener:
    """Hears what comes, in order. LISTEN may be refused or delayed by nothing here."""

    def __init__(self, **options):
        self.db = psycopg.connect(autocommit=True, **options)
        self.db.execute('LISTEN jobq')
        self.heard = []

    def listen(self, seconds=0.0):
        if select.select([self.db.fileno()], [], [], seconds)[0]:
            self.db.pgconn.consume_input()
        while notice := self.db.pgconn.notifies():
            self.heard.append(notice.extra.decode())

    def hears(self, what):
        """Whether it comes, and what came before it."""
        end = time.monotonic() + DEADLINE
        while what not in self.heard:
            if time.monotonic() > end:
                return False
            self.listen(0.1)
        return True

    def heard_until(self, admin):
        """All that has been sent by now: another queue's call is sent after them."""
        mark = f'mark {time.monotonic_ns()}'
        admin.run('SELECT jobq.create_queue(%s)', mark)
        hunger(admin, mark)
        admin.run("SELECT jobq.enqueue('t', queue => %s)", mark)
        assert self.hears(mark), 'the call after them did not come'
        # calls of one round have no order
        self.listen(0.3)
        heard = [name for name in self.heard if not name.startswith('mark')]
        self.heard = []
        return heard

    def close(self):
        self.db.close()


def fresh(admin, queue='q'):
    admin.run("SELECT jobq.drop_queue(queue, true) FROM jobq.queues")
    admin.run('SELECT jobq.create_queue(%s)', queue)


def hunger(admin, queue='q'):
    """A claim that comes back short; how many jobs it got."""
    jobs = admin.run('SELECT job_id FROM jobq.claim(%s, 10000)', queue)
    return len(jobs)


def enqueue(admin, queue='q'):
    return admin.one("SELECT jobq.enqueue('t', queue => %s)", queue)


def a_queue_that_nobody_claims_from():
    admin = Admin()
    fresh(admin)
    listener = Listener()
    listener.heard_until(admin)
    for _ in range(100):
        enqueue(admin)
    same(listener.heard_until(admin), ['q'], 'a queue that nobody ever claimed from calls once, for those who knew an older one')
    hunger(admin)
    for _ in range(100):
        enqueue(admin)
    same(listener.heard_until(admin), ['q'], 'one that somebody claimed from once calls once')
    admin.run("SELECT FROM jobq.claim('q', 10)")
    for _ in range(100):
        enqueue(admin)
    same(listener.heard_until(admin), [], 'a claim that was filled changes nothing')
    hunger(admin)
    admin.run("SELECT FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 100) AS n), queue => 'q')")
    same(listener.heard_until(admin), ['q'], 'a batch calls once')
    listener.close()


def what_is_not_there_calls_nobody():
    admin = Admin()
    fresh(admin)
    listener = Listener()
    listener.heard_until(admin)
    hunger(admin)
    admin.run('BEGIN')
    enqueue(admin)
    admin.run('ROLLBACK')
    admin.one("SELECT jobq.enqueue('t', queue => 'q', delay => '1 h')")
    same(listener.heard_until(admin), [], 'what was rolled back or comes later calls nobody')
    admin.run("SELECT jobq.enqueue('t', queue => 'q', delay => '0.1 s')")
    ok(listener.hears('q'), 'a promotion calls')
    listener.heard_until(admin)
    hunger(admin)
    admin.run("SELECT jobq.pause_queue('q')")
    hunger(admin)
    enqueue(admin)
    listener.heard_until(admin)
    hunger(admin)
    admin.run("SELECT jobq.resume_queue('q')")
    ok(listener.hears('q'), 'resume_queue calls')
    listener.close()


def a_busy_queue():
    """Claims that are always filled: a backlog."""
    admin, producer = Admin(), Session()
    fresh(admin)
    listener = Listener()
    admin.run("SELECT FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 500) AS n), queue => 'q')")
    listener.heard_until(admin)
    for _ in range(200):
        enqueue(producer)
        enqueue(producer)
        assert len(admin.run("SELECT job_id FROM jobq.claim('q', 2)")) == 2
    same(listener.heard_until(admin), [], 'a queue with a backlog calls nobody')
    # claims that are never filled: as many calls as the pace allows, however many jobs there are
    hunger(admin)
    listener.heard_until(admin)
    began, jobs = time.monotonic(), 0
    while time.monotonic() - began < 2:
        enqueue(producer)
        assert len(admin.run("SELECT job_id FROM jobq.claim('q', 2)")) == 1
        jobs += 1
        listener.listen()
    calls = len(listener.heard_until(admin))
    took = time.monotonic() - began
    ok(0 < calls <= BURST + took / INTERVAL + 1, 'a queue whose claims always come back short calls at its pace', f'{calls} calls in {took} s')
    tell(f'{jobs} jobs, each claimed by a claim that came back short: {calls} calls in {took:.2f} s', loud=False)
    listener.close()


def a_job_that_comes_during_a_claim():
    """Case 84. The claim has its snapshot already and waits for the table; the job is committed by him who has that, when nobody is hungry yet.
    The claim comes back short, and the job that it has not seen calls."""
    admin, maker, worker = Admin(), Admin(), Session()
    for isolation in ('read committed', 'serializable'):
        fresh(admin)
        listener = Listener()
        listener.heard_until(admin)
        worker.run(f"SET default_transaction_isolation = '{isolation}'")
        maker.run('BEGIN')
        maker.run('LOCK TABLE jobq.ready IN ACCESS EXCLUSIVE MODE')
        worker.start("SELECT job_id FROM jobq.claim('q')")
        until(lambda: admin.waits(worker) == 'Lock', 'it claims')
        enqueue(maker)
        maker.run('COMMIT')
        if worker.result(MOST) is None:
            ok(comes(lambda: listener.listen(0.1) or 'q' in listener.heard, MOST), f'case 84: a job that comes during a claim calls, {isolation}')
        else:
            ok(True, f'case 84: a job that comes during a claim is claimed, {isolation}')
        listener.close()


def names_and_payloads():
    """Case 79."""
    admin = Admin()
    for name in ('ü' * 31 + 'x', '😀' * 15 + 'abc', 'q' * 63, "it's \"q\", a\\b"):
        fresh(admin, name)
        listener = Listener()
        hunger(admin, name)
        sleeper = admin.sleeper(name)
        enqueue(admin, name)
        ok(listener.hears(name), f'case 79: a queue of {len(name.encode())} bytes is called by its name')
        same(sleeper.result(MOST), True, 'case 79: and wakes')
        listener.close()
    for size in (7_990, 8_000, 10_000_000):
        fresh(admin)
        listener = Listener()
        hunger(admin)
        sleeper = admin.sleeper()
        admin.run("SELECT jobq.enqueue('t', to_jsonb(repeat('x', %s)), queue => 'q')", size)
        ok(listener.hears('q'), f'case 79: a payload of {size} bytes calls')
        same(sleeper.result(MOST), True, 'case 79: and wakes')
        listener.close()


def the_default_queue_comes():
    admin = Admin()
    fresh(admin)
    listener = Listener()
    same(hunger(admin, 'default'), 0, 'a claim finds no default queue yet')
    listener.heard_until(admin)
    enqueue(admin, 'default')
    ok(comes(lambda: listener.listen(0.1) or 'default' in listener.heard, MOST), 'its first job calls')
    listener.close()


def another_database():
    """Case 87."""
    with psycopg.connect(autocommit=True) as db:
        db.execute('CREATE DATABASE elsewhere')
    admin, other = Admin(), Admin(dbname='elsewhere')
    other.run('CREATE EXTENSION jobq')
    fresh(admin)
    fresh(other)
    here, there = Listener(), Listener(dbname='elsewhere')
    here.heard_until(admin)
    there.heard_until(other)
    hunger(admin)
    hunger(other)
    enqueue(other)
    ok(there.hears('q'), 'case 87: a job calls in its own database')
    same(here.heard_until(admin), [], 'case 87: and not in the other one')
    here.close()
    there.close()


def a_producer_takes_no_lock_for_it():
    """Case 78. NOTIFY takes a lock for the whole server until its commit is through. Somebody has it and keeps it, since his commit waits for
    a standby that is not there; whoever needs it waits with him. Producers and workers do not, though there are listeners and hunger."""
    admin, keeper, producer = Admin(), Session(), Session()
    fresh(admin)
    listener = Listener()
    listener.heard_until(admin)
    admin.run('CREATE TABLE kept (n int)')
    admin.run('SET synchronous_commit = local')
    producer.run('SET synchronous_commit = local')
    admin.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    admin.run('SELECT pg_reload_conf()')
    held = "SELECT count(*) FROM pg_locks WHERE locktype = 'object' AND classid = 1262 AND objid = 0 AND granted AND pid = %s"

    def keeps():
        # the server's processes hear of the setting one by one: before, a commit waits for nobody
        if keeper.thread is None or keeper.is_done():
            keeper.start("DO $$ BEGIN PERFORM pg_notify('other', ''); INSERT INTO kept VALUES (1); END $$")
        return admin.waits(keeper) == 'IPC' and admin.one(held, keeper.pid) == 1
    until(keeps, 'somebody keeps the lock of NOTIFY')

    sleeper = admin.sleeper()
    statements = ["SELECT jobq.enqueue('t', queue => 'q')", "SELECT FROM jobq.enqueue_batch('t', '[1, 2, 3]', queue => 'q')",
                  "SELECT FROM jobq.claim('q', 10)", "SELECT jobq.fail(job_id, attempt, 'no', retry_in => '0') FROM jobq.lease",
                  "SELECT jobq.complete(job_id, attempt) FROM jobq.claim('q')", "SELECT jobq.pause_queue('q')", "SELECT jobq.resume_queue('q')"]
    for n, statement in enumerate(statements):
        if n == 0:
            hunger(producer)
        ok(producer.start(statement).result(MOST) != 'still at it' and producer.error is None,
           f'case 78: does not wait for it: {statement[:40]}', producer.error)
    same(sleeper.result(MOST), True, 'case 78: and a sleeper is woken')
    ok(admin.one(held, keeper.pid) == 1 and not keeper.is_done(), 'case 78: while somebody had it')
    waiting = Session()
    waiting.run('SET synchronous_commit = local')
    waiting.start('NOTIFY something')
    ok(comes(lambda: admin.waits(waiting) == 'Lock', MOST), 'case 78: for which a NOTIFY waits')
    hunger(producer)
    enqueue(producer)

    admin.run('ALTER SYSTEM RESET synchronous_standby_names')
    admin.run('SELECT pg_reload_conf()')
    same(keeper.result(MOST), None, 'case 78: he gives it back')
    ok(listener.hears('q'), 'case 78: and the manager, that had to wait, calls')
    listener.close()


if __name__ == '__main__':
    run_all([a_queue_that_nobody_claims_from, what_is_not_there_calls_nobody, a_busy_queue, a_job_that_comes_during_a_claim, names_and_payloads, the_default_queue_comes,
             another_database, a_producer_takes_no_lock_for_it])
