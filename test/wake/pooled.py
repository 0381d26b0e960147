#!/usr/bin/env python3
"""Through a transaction pooler with three connections to the server: every verb of a worker's life meets another backend; a wait is a
statement of its own and occupies its connection while it sleeps.

    pooled.py DIRECT     a connection string past the pooler; PGHOST and PGPORT are the pooler's
"""
import sys

from sessions import MOST, Admin, Session, comes, ok, run_all, same

direct = sys.argv[1]


class Pooled(Session):
    def __init__(self):
        super().__init__(prepare_threshold=None)


def fresh():
    admin = Admin(conninfo=direct)
    admin.run("SELECT jobq.drop_queue('pooled', true) FROM jobq.queues WHERE queue = 'pooled'")
    admin.run("SELECT jobq.create_queue('pooled', retry_base => '0')")
    return admin


def asleep(admin):
    return admin.one("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CALL jobq.wait%%' AND state = 'active' AND wait_event_type = 'Extension'")


def verbs_meet_other_backends():
    """Round robin would give a lone client one backend after the other; others that come between make it sure."""
    fresh()
    client, between = Pooled(), Pooled()
    seen = []

    def run(statement, *values):
        between.run('SELECT 1')
        rows = client.run(f'SELECT public.worker_pid(), v.* FROM {statement} AS v', *values)
        seen.extend(row[0] for row in rows)
        return [row[1:] for row in rows]

    for _ in range(5):
        job = run("jobq.enqueue('t', queue => 'pooled')")[0][0]
        keyed = run("jobq.enqueue('t', queue => 'pooled', job_key => 'k')")[0][0]
        same(run("jobq.enqueue_unique('t', queue => 'pooled', job_key => 'k')"), [(keyed, False)], 'a key is known to all')
        tokens = [row[:2] for row in run("jobq.claim('pooled', 2)")]
        same(tokens, [(job, 1), (keyed, 1)], 'claimed')
        same(run('jobq.renew(%s, %s)', job, 1)[0][0] is not None, True, 'renewed')
        same(run("jobq.fail(%s, %s, 'no', retry_in => '0')", job, 1), [('ready',)], 'failed, to be tried again')
        found = run("jobq.complete_and_claim(%s, %s, 'pooled')", [keyed], [1])
        same([row[:2] for row in found], [(job, 2)], 'one completed and the other claimed')
        same(run('jobq.complete(%s, %s)', job, 1), [(False,)], 'an old token is refused')
        same(run('jobq.complete(%s, %s)', job, 2), [(True,)], 'completed')
    same(len(set(seen)) > 1, True, 'by several backends')


def a_wait_occupies_its_connection():
    admin = fresh()
    client = Pooled()
    same(client.one("CALL jobq.wait('pooled', '20 ms')"), False, 'a wait through the pooler')
    same(client.state('BEGIN') + client.state("CALL jobq.wait('pooled', '20 ms')") + client.state('ROLLBACK'), '000002500100000', 'not in a transaction')
    sleepers = [Pooled().start("CALL jobq.wait('pooled', '1 h')") for _ in range(3)]
    ok(comes(lambda: asleep(admin) == 3), 'three waits have all three connections')
    other = client.start('SELECT 1')
    comes(other.is_done, 0.3)
    ok(not other.is_done(), 'so another statement waits')
    admin.run("SELECT jobq.enqueue('t', queue => 'pooled')")
    same(other.result(MOST), 1, 'until a job wakes one of them')
    ok(comes(lambda: sum(s.is_done() for s in sleepers) == 1), 'one')
    same(asleep(admin), 2, 'and the others sleep')
    same(len(client.run("SELECT job_id FROM jobq.claim('pooled')")), 1, 'by its connection a job is claimed')
    # a pooler that loses a client in a statement closes the connection
    for sleeper in sleepers:
        if not sleeper.is_done():
            sleeper.db.pgconn.finish()
    ok(comes(lambda: asleep(admin) == 0), 'clients that go free their connections')
    same(client.one('SELECT 1'), 1, 'for others')


def told_by_one_backend_claimed_by_another():
    """The promise of a claim stands with the backend that told of the job: a claim by another one keeps no promise, and a wake too many is
    the worst that comes of it."""
    admin = fresh()
    client = Pooled()
    for _ in range(10):
        admin.run("SELECT jobq.enqueue('t', queue => 'pooled')")
        same(client.one("CALL jobq.wait('pooled', '1 h')"), True, 'told')
        job, attempt = client.run("SELECT job_id, attempt FROM jobq.claim('pooled')")[0]
        same(client.one('SELECT jobq.complete(%s, %s)', job, attempt), True, 'and done')
    same(client.one("CALL jobq.wait('pooled', '20 ms')"), False, 'nothing is left')


if __name__ == '__main__':
    run_all([verbs_meet_other_backends, a_wait_occupies_its_connection, told_by_one_backend_claimed_by_another])
