#!/usr/bin/env python3
"""What wakes a sleeper, and what does not. What does not is told by order where it can be: another sleeper, who came first and must not be
woken, would have taken the wake; else by a short timeout that passes.
"""

import psycopg

from sessions import MOST, Admin, Session, comes, end, freeze, ok, run_all, same, thaw, until

OTHER = 'other_database'


def fresh(admin, *queues):
    admin.run("SELECT jobq.drop_queue(queue, true) FROM jobq.queues")
    for queue in queues or ('q', 'r'):
        admin.run("SELECT jobq.create_queue(%s, retry_base => '0', max_crashes => 5)", queue)


def enqueue(admin, queue='q', **more):
    values = dict(delay=None, job_key=None, mode='keep') | more
    return admin.one("SELECT jobq.enqueue('t', queue => %s, delay => %s, job_key => %s, job_key_mode => %s)", queue, values['delay'],
                     values['job_key'], values['mode'])


def claim(admin, queue='q', lease=None):
    return admin.run('SELECT job_id, attempt FROM jobq.claim(%s, lease => %s)', queue, lease)[0]


def dead(admin):
    enqueue(admin)
    job, attempt = claim(admin)
    admin.run("SELECT jobq.fail(%s, %s, 'no', retry => false)", job, attempt)
    return job


def running(admin, lease=None):
    enqueue(admin)
    return claim(admin, lease=lease)


# What is there before, and what wakes. Each is given the session that does it and what the first made.
WAKES = {
    'enqueue': (None, lambda s, _: enqueue(s)),
    'enqueue_unique': (None, lambda s, _: s.run("SELECT FROM jobq.enqueue_unique('t', queue => 'q', job_key => 'k')")),
    'enqueue_batch': (None, lambda s, _: s.run("SELECT FROM jobq.enqueue_batch('t', '[1]', queue => 'q')")),
    'enqueue in a transaction': (None, lambda s, _: s.run("DO $$ BEGIN PERFORM jobq.enqueue('t', queue => 'q'); PERFORM jobq.enqueue('t', queue => 'r'); END $$")),
    'enqueue in a savepoint that is kept': (None, lambda s, _: (s.run('BEGIN'), s.run('SAVEPOINT s'), enqueue(s), s.run('RELEASE s'), s.run('COMMIT'))),
    'enqueue beside a savepoint that is lost': (None, lambda s, _: (s.run('BEGIN'), enqueue(s), s.run('SAVEPOINT s'), enqueue(s), s.run('ROLLBACK TO s'), s.run('COMMIT'))),
    'the promotion of a delayed job': (None, lambda s, _: enqueue(s, delay='0.2 s')),
    'a failure that is retried at once': (running, lambda s, made: s.run("SELECT jobq.fail(%s, %s, 'no', retry_in => '0')", *made)),
    'a failure that is retried soon': (running, lambda s, made: s.run("SELECT jobq.fail(%s, %s, 'no', retry_in => '0.2 s')", *made)),
    'a lease that expires': (lambda s: running(s, '2 s'), lambda s, _: None),
    'retry of a dead job': (dead, lambda s, made: s.run('SELECT jobq.retry(%s)', made)),
    'retry_dead': (dead, lambda s, made: s.run("SELECT jobq.retry_dead('q')")),
    'resume_queue': (lambda s: (s.run("SELECT jobq.pause_queue('q')"), enqueue(s)), lambda s, _: s.run("SELECT jobq.resume_queue('q')")),
    'reschedule to now': (lambda s: enqueue(s, delay='1 h'), lambda s, made: s.run('SELECT jobq.reschedule(%s, run_at => clock_timestamp())', made)),
    'reschedule to soon': (lambda s: enqueue(s, delay='1 h'), lambda s, made: s.run("SELECT jobq.reschedule(%s, run_at => clock_timestamp() + interval '0.2 s')", made)),
    'replace with an earlier time': (lambda s: enqueue(s, delay='1 h', job_key='k'), lambda s, made: enqueue(s, job_key='k', mode='replace')),
    'snooze of nothing': (running, lambda s, made: s.run("SELECT jobq.snooze(%s, %s, '0')", *made)),
    'snooze for a moment': (running, lambda s, made: s.run("SELECT jobq.snooze(%s, %s, '0.2 s')", *made)),
}


def what_wakes():
    admin = Admin()
    for name, (prepare, act) in WAKES.items():
        fresh(admin)
        made = prepare(admin) if prepare else None
        # who sleeps at another door came first, and must not be given what is for this one
        other, sleeper = admin.sleeper('r'), admin.sleeper()
        act(admin, made)
        same(sleeper.result(MOST), True, f'{name} wakes')
        if 'transaction' not in name:
            ok(not other.is_done(), f'{name} wakes nobody at another queue')
        end(sleeper, other)


# A transaction that has taken the only ready job in one way or another.
TAKES = {
    'claim': "SELECT FROM jobq.claim('q')",
    'claim that buries': "SELECT FROM jobq.claim('q')",
    'cancel': "SELECT jobq.cancel({job})",
    'reschedule': "SELECT jobq.reschedule({job}, run_at => now() + interval '1 h')",
    'reschedule of its priority': 'SELECT jobq.reschedule({job}, priority => 9)',
    'replace': "SELECT jobq.enqueue('t', queue => 'q', job_key => 'k', job_key_mode => 'replace', delay => '1 h')",
    'purge_queue': "SELECT jobq.purge_queue('q')",
    'drop_queue': "SELECT jobq.drop_queue('q', true)",
}
LOSES = {
    'rolled back': lambda admin, taker: taker.run('ROLLBACK'),
    'rolled back to a savepoint': lambda admin, taker: taker.run('ROLLBACK TO s'),
    'ended by an error': lambda admin, taker: taker.state('SELECT 1 / 0') and taker.run('ROLLBACK'),
    'ended by the death of its session': lambda admin, taker: admin.terminate(taker),
}


def what_is_given_back_wakes():
    admin = Admin()
    for what, statement in TAKES.items():
        for how, lose in LOSES.items():
            if how != 'rolled back' and what not in ('claim', 'cancel'):
                continue
            if what == 'drop_queue' and how == 'rolled back to a savepoint':
                continue
            fresh(admin)
            job = enqueue(admin, job_key='k')
            if what == 'claim that buries':
                admin.run('UPDATE jobq.ready SET tries = 100 WHERE job_id = %s', job)
            taker = Session()
            taker.run('SET jobq.claim_in_transaction = allow')
            taker.run('BEGIN')
            taker.run('SAVEPOINT s')
            taker.run(statement.format(job=job))
            sleeper = admin.sleeper()
            lose(admin, taker)
            same(sleeper.result(MOST), True, f'{what}, {how}, wakes')
            end(sleeper, taker)
    # within a savepoint that was released, and lost with the one around it
    fresh(admin)
    enqueue(admin)
    taker = Session()
    for statement in ('SET jobq.claim_in_transaction = allow', 'BEGIN', 'SAVEPOINT a', 'SAVEPOINT b', "SELECT FROM jobq.claim('q')", 'RELEASE b'):
        taker.run(statement)
    sleeper = admin.sleeper()
    taker.run('ROLLBACK TO a')
    same(sleeper.result(MOST), True, 'a claim that was kept within what was rolled back wakes')


def as_many_as_there_are_jobs():
    admin = Admin()
    for jobs, sleeping in ((3, 6), (7, 4)):
        fresh(admin)
        all_of_them = admin.sleepers(sleeping)
        admin.run("SELECT FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, %s) AS n), queue => 'q')", jobs)
        woken = min(jobs, sleeping)
        ok(comes(lambda: sum(s.is_done() for s in all_of_them) >= woken, MOST), f'a batch of {jobs} wakes {woken} of {sleeping}')
        comes(lambda: sum(s.is_done() for s in all_of_them) > woken, 0.5)
        same([s.is_done() for s in all_of_them], [True] * woken + [False] * (sleeping - woken), 'and no other, those who came first')
        end(*all_of_them)
    # in one transaction, one by one
    fresh(admin)
    all_of_them = admin.sleepers(5)
    admin.run("DO $$ BEGIN PERFORM jobq.enqueue('t', queue => 'q'); BEGIN PERFORM jobq.enqueue('t', queue => 'q'); END;"
              " BEGIN PERFORM jobq.enqueue('t', queue => 'q'); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END; END $$")
    ok(comes(lambda: sum(s.is_done() for s in all_of_them) >= 2, MOST), 'two jobs of a transaction, and one that is taken back, wake two')
    comes(lambda: sum(s.is_done() for s in all_of_them) > 2, 0.5)
    same(sum(s.is_done() for s in all_of_them), 2, 'and no third')


def any_of_several():
    admin = Admin()
    fresh(admin)
    for queue in ('r', 'q'):
        sleeper = admin.until_asleep(Session().start("CALL jobq.wait_any('{q,r}', '1 h')"))
        job = enqueue(admin, queue)
        same(sleeper.result(MOST), queue, f'who waits for several is told of {queue}')
        admin.run('SELECT jobq.cancel(%s)', job)
    names = [f'queue {n}' for n in range(64)]
    fresh(admin, *names)
    sleeper = admin.until_asleep(Session().start("CALL jobq.wait_any(%s, '1 h')", names))
    enqueue(admin, names[63])
    same(sleeper.result(MOST), names[63], 'the last of 64 queues wakes')


def several_queues_and_one_hand():
    """Who is woken for one queue and takes from another passes the wake on."""
    admin = Admin()
    fresh(admin)
    both = admin.until_asleep(Session().start("CALL jobq.wait_any('{r,q}', '1 h')"))
    one = admin.sleeper('q')
    freeze(both)
    enqueue(admin, 'q')
    enqueue(admin, 'r')
    thaw(both)
    same(both.result(MOST), 'r', 'woken for q, and told of r, which comes first')
    same(one.result(MOST), True, 'several queues: the wake for q goes to the next one')

    for verb in ('claim_from', 'claim', 'complete_and_claim'):
        fresh(admin)
        both = admin.until_asleep(Session().start("CALL jobq.wait_any('{r,q}', '1 h')"))
        one = admin.sleeper('q')
        enqueue(admin, 'q')
        same(both.result(MOST), 'q', 'told of q')
        enqueue(admin, 'r')
        taken = both.run({'claim_from': "SELECT queue FROM jobq.claim_from('{r,q}')", 'claim': "SELECT queue FROM jobq.claim('r')",
                          'complete_and_claim': "SELECT queue FROM jobq.complete_and_claim('{}', '{}', 'r')"}[verb])
        same(taken, [('r',)], f'and {verb} takes from r')
        same(one.result(MOST), True, f'several queues: {verb} from another queue breaks the promise, the next one is woken')


def a_job_that_comes_during_a_look():
    """Case 84. The look has its snapshot already and waits for the table; the job is committed by him who has that. The wait has not joined the
    line, so nobody is there to be woken; it looks again when it has."""
    admin, maker = Admin(), Admin()
    fresh(admin)
    maker.run('BEGIN')
    maker.run('LOCK TABLE jobq.ready IN ACCESS EXCLUSIVE MODE')
    sleeper = Session().start("CALL jobq.wait('q', '1 h')")
    until(lambda: admin.waits(sleeper) == 'Lock', 'it looks')
    enqueue(maker)
    maker.run('COMMIT')
    same(sleeper.result(MOST), True, 'case 84: a job that comes during the first look is seen by the second')


def a_queue_that_goes():
    admin = Admin()
    for known in (False, True) * 5:
        fresh(admin)
        session = Session()
        if known:
            session.run("SELECT FROM jobq.claim('q')")
        sleeper = admin.until_asleep(session.start("CALL jobq.wait('q', '1 h')"))
        several = admin.until_asleep(Session().start("CALL jobq.wait_any('{r,q}', '1 h')"))
        admin.run("SELECT jobq.drop_queue('q', true)")
        if sleeper.result(MOST) != '42704' or several.result(MOST) != '42704':
            break
        end(sleeper, several)
    same([sleeper.result(0), several.result(0)], ['42704', '42704'], 'who waits for a queue that is dropped is told')
    # made again under its name it is another queue, and all is well
    fresh(admin)
    sleeper = admin.sleeper()
    admin.run("DO $$ BEGIN PERFORM jobq.drop_queue('q'); PERFORM jobq.create_queue('q'); END $$")
    enqueue(admin)
    same(sleeper.result(MOST), True, 'a queue that was made again within a transaction wakes as before')


def the_default_queue_comes():
    admin = Admin()
    for way in ('its first job', 'create_queue and a job', 'a job within a transaction'):
        fresh(admin)
        admin.run("DELETE FROM jobq.queue WHERE name = 'default'")
        sleeper = admin.sleeper('default')
        several = admin.until_asleep(Session().start("CALL jobq.wait_any('{q,default}', '1 h')"))
        if way.startswith('create'):
            admin.run("SELECT jobq.create_queue('default')")
            comes(lambda: sleeper.is_done(), 0.2)
            ok(not sleeper.is_done(), 'the default queue is made, without a job: nobody has something to claim')
        admin.run("SELECT FROM jobq.enqueue_batch('t', '[1, 2]')")
        same(sleeper.result(MOST), True, f'{way} in the default queue wakes')
        same(several.result(MOST), 'default', f'{way} in the default queue wakes who waits for several')
        end(sleeper, several)
    fresh(admin)
    sleeper = admin.sleeper('default', '2 s')
    admin.run('BEGIN')
    admin.run("SELECT jobq.enqueue('t')")
    admin.run('ROLLBACK')
    same(sleeper.result(MOST), False, 'a first job that is rolled back leaves the default queue unmade')


def copy_by_hand():
    """As a restore does it."""
    admin = Admin()
    fresh(admin)
    enqueue(admin)
    rows = {}
    for table in ('job', 'ready'):
        with admin.db.cursor().copy(f'COPY jobq.{table} TO STDOUT') as copy:
            rows[table] = b''.join(bytes(block) for block in copy)
        admin.run(f'DELETE FROM jobq.{table}')
    sleeper = admin.sleeper()
    for table in ('job', 'ready'):
        with admin.db.cursor().copy(f'COPY jobq.{table} FROM STDIN') as copy:
            copy.write(rows[table])
    same(sleeper.result(MOST), True, 'COPY into jobq.ready wakes')
    admin.run('DELETE FROM jobq.ready')
    admin.run('DELETE FROM jobq.job')
    sleeper = admin.sleeper()
    admin.run('BEGIN')
    admin.run('SET LOCAL search_path = jobq')
    for table in ('ready', 'job'):
        with admin.db.cursor().copy(f'COPY {table} FROM STDIN') as copy:
            copy.write(rows[table])
    admin.run('COMMIT')
    same(sleeper.result(MOST), True, 'and in a transaction, by the search_path, ready before job')


def what_does_not_wake():
    admin = Admin()
    fresh(admin)
    sleeper = admin.sleeper(timeout='2 s')
    admin.run('BEGIN')
    enqueue(admin)
    admin.run('ROLLBACK')
    admin.run('BEGIN')
    admin.run('SAVEPOINT s')
    enqueue(admin)
    admin.run('ROLLBACK TO s')
    admin.run('COMMIT')
    enqueue(admin, delay='1 h')
    admin.run("SELECT jobq.pause_queue('q')")
    enqueue(admin)
    same(sleeper.result(MOST), False, 'nothing was there: rolled back, delayed, paused')


def another_database():
    """Case 87: the same queue number in another database. Who sleeps there came first and would have taken the wake."""
    admin, other = Admin(), Admin(dbname=OTHER)
    for session in (admin, other):
        fresh(session)
        session.run("UPDATE jobq.queue SET queue_id = 1000000 WHERE name = 'q'")
    far = other.sleeper(dbname=OTHER)
    near = admin.sleeper()
    enqueue(admin)
    same(near.result(MOST), True, 'case 87: a job wakes in its own database')
    ok(not far.is_done(), 'case 87: and not in the other one')
    enqueue(other)
    same(far.result(MOST), True, 'case 87: which has its own')


if __name__ == '__main__':
    with psycopg.connect(autocommit=True) as db:
        db.execute(f'CREATE DATABASE {OTHER}')
    with psycopg.connect(autocommit=True, dbname=OTHER) as db:
        db.execute('CREATE EXTENSION jobq')
    run_all([what_wakes, what_is_given_back_wakes, as_many_as_there_are_jobs, any_of_several, several_queues_and_one_hand,
             a_job_that_comes_during_a_look, a_queue_that_goes, the_default_queue_comes,
             copy_by_hand, what_does_not_wake, another_database])
