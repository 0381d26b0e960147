#!/usr/bin/env python3
"""Every public function through psycopg 3, which binds on the server's side: once with all its arguments by position, once with all of them by
name, and with values of Python's own types; then what comes back. The list of functions is compared with pg_proc, so that a new one
without a test here fails. Prints TAP; connects by PGHOST, PGPORT, PGUSER, PGDATABASE to a database with the extension.
"""
import json
import sys
import traceback
from datetime import datetime, timedelta, timezone

import psycopg
from psycopg.types.json import Jsonb

db = psycopg.connect(autocommit=True)
db.execute('SET client_min_messages = error')
Q = 'psycopg queue'
number = 0


def one(statement, *values):
    return db.execute(statement, values).fetchone()


def fresh_queue():
    global number
    number += 1
    return f'psycopg {number}'


def made_queue():
    name = fresh_queue()
    db.execute('SELECT jobq.create_queue(%s)', (name,))
    return name


def job(**options):
    return one("SELECT jobq.enqueue('work', queue => %s, job_key => %s, delay => %s)", Q, options.get('key'), options.get('delay'))[0]


def held():
    """A lease of a job of its own, as (job_id, attempt)."""
    queue = made_queue()
    db.execute("SELECT jobq.enqueue('work', queue => %s)", (queue,))
    return one('SELECT job_id, attempt FROM jobq.claim(%s)', queue)


def dead(queue=Q):
    wanted = job() if queue == Q else one("SELECT jobq.enqueue('work', queue => %s)", queue)[0]
    for found, attempt in db.execute('SELECT job_id, attempt FROM jobq.claim(%s, 10000)', (queue,)).fetchall():
        db.execute("SELECT jobq.fail(%s, %s, 'no', retry => false)", (found, attempt))
    return wanted


def with_job(queue=None):
    queue = queue or made_queue()
    db.execute("SELECT jobq.enqueue('work', queue => %s)", (queue,))
    return queue


def later():
    return datetime.now(timezone.utc) + timedelta(hours=1)


def settings(queue):
    return dict(queue=queue, lease=timedelta(seconds=90), max_attempts=7, max_crashes=2, retry_base=timedelta(milliseconds=1500),
                retry_cap='10 min', keep_completed=timedelta(days=2), keep_dead='1000 years')


def producer(**more):
    values = dict(task='work', payload=Jsonb({'a': [1, None, 'ü']}), queue=Q, priority=3, run_at=None, delay=timedelta(minutes=1), max_attempts=4,
                  max_crashes=2, group_key='tenant', job_key=fresh_queue(), job_key_mode='replace', headers=Jsonb({'trace': 'x'}))
    return {**values, **more}


def batch(**more):
    values = producer(payloads=Jsonb([1, 'two', {'three': 3}]), **more)
    return {key: values[key] for key in ('task', 'payloads', 'queue', 'priority', 'run_at', 'delay', 'max_attempts', 'max_crashes', 'group_key', 'headers')}


def schedule(**more):
    values = dict(name=fresh_queue(), schedule='0 12 * * *', task='work', payload=Jsonb({'a': 1}), queue=Q, timezone='Europe/Berlin', overlap='allow',
                  catch_up='none', starts_at=None, ends_at=later() + timedelta(days=9), jitter=timedelta(seconds=5), priority=3, max_attempts=4,
                  max_crashes=2, group_key='tenant', headers=Jsonb({'trace': 'x'}))
    return {**values, **more}


def command():
    return dict(name=fresh_queue(), schedule='0 12 * * *', command='SELECT 1', timezone='Europe/Berlin', overlap='allow', catch_up='none', starts_at=None,
                ends_at=later() + timedelta(days=9), jitter=timedelta(seconds=5), timeout=timedelta(minutes=1), max_attempts=2, run_as=None)


def made_schedule():
    name = fresh_queue()
    db.execute('SELECT jobq.schedule_job(%s, %s, %s)', (name, '@daily', 'work'))
    return name


def tokens(*pairs):
    return dict(job_ids=[p[0] for p in pairs], attempts=[p[1] for p in pairs])


def token():
    found = held()
    return dict(job_id=found[0], attempt=found[1])


def is_row_of(queue):
    return lambda rows, given: len(rows) == 1 and rows[0]['task'] == 'work' and rows[0]['attempt'] == 1 and rows[0]['queue'] == queue(given)


def value(expected):
    return lambda rows, given: len(rows) == 1 and list(rows[0].values()) == [expected]


# name: (all the arguments in the order of the declaration, what the rows have to be)
CALLS = {
    'create_queue': (lambda: settings(fresh_queue()), value(True)),
    'alter_queue': (lambda: settings(made_queue()), lambda rows, given: len(rows) == 1),
    'drop_queue': (lambda: dict(queue=with_job(), force=True), lambda rows, given: len(rows) == 1),
    'pause_queue': (lambda: dict(queue=made_queue()), lambda rows, given: len(rows) == 1),
    'resume_queue': (lambda: dict(queue=made_queue()), lambda rows, given: len(rows) == 1),
    'purge_queue': (lambda: dict(queue=with_job()), value(1)),
    'set_group': (lambda: dict(queue=made_queue(), group_key='group', weight=10), lambda rows, given: len(rows) == 1),
    'queue_counts': (lambda: dict(queue=with_job(), exact=True), lambda rows, given: len(rows) == 1 and rows[0]['ready'] == 1),
    'enqueue': (producer, lambda rows, given: isinstance(list(rows[0].values())[0], int)),
    'enqueue_unique': (producer, lambda rows, given: rows[0]['job_id'] > 0 and rows[0]['created'] is True),
    'enqueue_batch': (batch, lambda rows, given: len(rows) == 3),
    'claim': (lambda: dict(queue=with_job(), max_jobs=5, worker='w', lease=timedelta(seconds=30)), is_row_of(lambda given: given['queue'])),
    'claim_from': (lambda: dict(queues=[made_queue(), with_job()], max_jobs=5, worker='w', lease='30 s'), is_row_of(lambda given: given['queues'][1])),
    'renew': (lambda: dict(**token(), lease=timedelta(minutes=5)),
              lambda rows, given: timedelta(minutes=4) < list(rows[0].values())[0] - datetime.now(timezone.utc) < timedelta(minutes=6)),
    'renew_batch': (lambda: dict(**tokens(held(), held()), lease='5 min'), lambda rows, given: sorted(row['job_id'] for row in rows) == sorted(given['job_ids'])),
    'complete': (lambda: dict(**token(), result=Jsonb({'ok': True})), value(True)),
    'complete_batch': (lambda: dict(**tokens(held(), held()), results=Jsonb([{'n': 1}, None])),
                       lambda rows, given: sorted(list(row.values())[0] for row in rows) == sorted(given['job_ids'])),
    'complete_and_claim': (lambda: dict(**tokens(held()), queue=with_job(), max_jobs=1, worker='w', lease=timedelta(seconds=30), results=Jsonb(['r'])),
                           is_row_of(lambda given: given['queue'])),
    'fail': (lambda: dict(**token(), error='it broke: ü', retry_in=timedelta(0), retry=True), value('ready')),
    'snooze': (lambda: dict(**token(), delay=timedelta(minutes=1)), value(True)),
    'cancel': (lambda: dict(job_id=job(), reason='not wanted'), value(True)),
    'cancel_key': (lambda: dict(queue=Q, job_key=(lambda key: job(key=key) and key)(fresh_queue()), reason='not wanted'), value(True)),
    'retry': (lambda: dict(job_id=dead(), run_at=later()), value(True)),
    'retry_dead': (lambda: dict(queue=(lambda queue: dead(queue) and queue)(made_queue()), max_jobs=10), value(1)),
    'reschedule': (lambda: dict(job_id=job(), run_at=later(), priority=9), value(True)),
    'wait': (lambda: dict(queue=with_job(), timeout=timedelta(seconds=30), ready=None), lambda rows, given: rows == [{'ready': True}]),
    'wait_any': (lambda: dict(queues=[made_queue(), with_job()], timeout='1 h', queue=None), lambda rows, given: rows == [{'queue': given['queues'][1]}]),
    'schedule_job': (lambda: schedule(), lambda rows, given: isinstance(list(rows[0].values())[0], int)),
    'schedule': (lambda: command(), lambda rows, given: isinstance(list(rows[0].values())[0], int)),
    'enqueue_sql': (lambda: dict(command='SELECT 1', run_at=None, delay=timedelta(hours=1), timeout=timedelta(minutes=1), max_attempts=2, run_as=None),
                    lambda rows, given: isinstance(list(rows[0].values())[0], int)),
    'cancel_sql': (lambda: dict(job_id=one("SELECT jobq.enqueue_sql('SELECT 1', delay => '1 h')")[0], reason='not wanted'), value(True)),
    'alter_schedule': (lambda: schedule(name=made_schedule(), command=None, timeout=None, run_as=None), lambda rows, given: len(rows) == 1),
    'unschedule': (lambda: dict(name=made_schedule()), value(True)),
    'pause_schedule': (lambda: dict(name=made_schedule()), lambda rows, given: len(rows) == 1),
    'resume_schedule': (lambda: dict(name=made_schedule()), lambda rows, given: len(rows) == 1),
    'run_schedule': (lambda: dict(name=made_schedule()), lambda rows, given: isinstance(list(rows[0].values())[0], int)),
    'adopt': (lambda: {}, lambda rows, given: len(rows) == 1),
    'next_runs': (lambda: dict(schedule='0 12 * * *', count=2, timezone='UTC', after=later()), lambda rows, given: len(rows) == 2),
    'lane_states': (lambda: with_job() and {}, lambda rows, given: any(row['highest'] > 0 for row in rows)),
    'health': (lambda: {}, lambda rows, given: rows[0] == {'check_name': 'preloaded', 'ok': True, 'message': rows[0]['message']}),
    'sweep': (lambda: dict(max_jobs=100), lambda rows, given: list(rows[0]) == ['promoted', 'retried', 'died']),
}


def rows_of(cursor):
    names = [column.name for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def call(name, kind, notation):
    arguments, right = CALLS[name]
    given = arguments()
    places = ', '.join('%s' if notation == 'positional' else f'{key} => %s' for key in given)
    statement = f'CALL jobq.{name}({places})' if kind == 'p' else f'SELECT * FROM jobq.{name}({places})'
    rows = rows_of(db.execute(statement, list(given.values())))
    assert right(rows, given), (rows, given)


def every_function_is_here(functions):
    assert set(functions) == set(CALLS), f'no test: {set(functions) - set(CALLS)}, no function: {set(CALLS) - set(functions)}'


def every_argument_is_here(functions):
    for name, (kind, names) in functions.items():
        given = list(CALLS[name][0]())
        assert given == names, f'{name}: the declaration has {names}, the test {given}'


def json_comes_back():
    queue = made_queue()
    for payload in [{}, [], 0, 'text', None, True, {'big': 9007199254740993, 'small': -0.1, 'deep': [[{'ü€😀': '"\\\n'}]], 'zeros': '1.10'}]:
        made = one("SELECT jobq.enqueue('t', %s, queue => %s, headers => %s)", Jsonb(payload), queue, Jsonb({'h': payload}))[0]
        found = one('SELECT job_id, attempt, payload, headers FROM jobq.claim(%s)', queue)
        assert found[0] == made and found[2] == payload and found[3] == {'h': payload}, found
        assert one('SELECT jobq.complete(%s, %s, %s)', found[0], found[1], Jsonb({'r': payload}))[0]
        assert one('SELECT result FROM jobq.history WHERE job_id = %s', made)[0] == {'r': payload}
    # as text, which is what json.dumps leaves
    made = one('SELECT jobq.enqueue(%s, %s, queue => %s)', 't', json.dumps({'a': 1}), queue)[0]
    assert one('SELECT payload FROM jobq.claim(%s) WHERE job_id = %s', queue, made)[0] == {'a': 1}
    db.execute("SELECT jobq.enqueue_batch('t', %s, queue => %s)", (Jsonb([1, None, {'x': []}]), queue))
    assert [r[0] for r in db.execute('SELECT payload FROM jobq.claim(%s, 10)', (queue,)).fetchall()] == [1, None, {'x': []}]


def intervals_are_understood():
    for length, seconds in [(timedelta(seconds=1), 1), (timedelta(hours=24), 86400), ('90 s', 90), ('00:01:30', 90), ('PT2M', 120), ('1 day', 86400), (timedelta(milliseconds=1500), 1.5)]:
        assert one('SELECT extract(epoch FROM lease_expires_at - clock_timestamp())::float8 FROM jobq.claim(%s, lease => %s)', with_job(), length)[0] - seconds < 0.001
        until = one('SELECT jobq.renew(%s, %s, %s)', *held(), length)[0]
        assert abs((until - datetime.now(timezone.utc)).total_seconds() - seconds) < 5, until
    for length in ['1 month', '-1 s', timedelta(seconds=-1), timedelta(hours=25)]:
        try:
            one('SELECT * FROM jobq.claim(%s, lease => %s)', Q, length)
        except psycopg.errors.InvalidParameterValue:
            continue
        raise AssertionError(f'a lease of {length} was taken')


def instants_are_understood():
    for when in [later(), later().astimezone(timezone(timedelta(hours=5, minutes=45))), (later()).isoformat()]:
        made = one('SELECT jobq.enqueue(%s, queue => %s, run_at => %s)', 't', Q, when)[0]
        found = one('SELECT run_at FROM jobq.jobs WHERE job_id = %s', made)[0]
        assert found == (when if isinstance(when, datetime) else datetime.fromisoformat(when)), (found, when)


def large_numbers_are_kept():
    """Ids beyond what a float or an int4 holds, on a sequence that is put back."""
    before = one("SELECT last_value FROM jobq.job_number")[0]
    for start in (2**31 + 5, 2**53 + 1):
        db.execute("SELECT setval('jobq.job_number', %s)", (start,))
        queue = made_queue()
        made = one('SELECT jobq.enqueue(%s, queue => %s)', 't', queue)[0]
        assert made > start
        found = one('SELECT job_id, attempt FROM jobq.claim(%s)', queue)
        assert found[0] == made and isinstance(found[0], int)
        assert one('SELECT jobq.renew(%s, %s) IS NOT NULL', *found)[0] is True
        assert one('SELECT * FROM jobq.renew_batch(%s, %s)', [made], [found[1]])[0] == made
        assert one('SELECT * FROM jobq.complete_batch(%s, %s)', [made], [found[1]])[0] == made
        db.execute('SELECT jobq.drop_queue(%s, true)', (queue,))
    db.execute("SELECT setval('jobq.job_number', %s)", (before,))


def null_means_the_default():
    queue = with_job()
    assert one('SELECT task FROM jobq.claim(%s, %s, %s, %s)', queue, None, None, None)[0] == 'work'
    assert one('SELECT jobq.enqueue(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)', 't', None, queue, *[None] * 9)[0] > 0
    try:
        one('SELECT jobq.enqueue(%s)', None)
    except psycopg.errors.NullValueNotAllowed as error:
        assert 'task' in str(error)
    else:
        raise AssertionError('a task of NULL was taken')


def nothing_in_hand():
    assert rows_of(db.execute('SELECT * FROM jobq.claim(%s)', (made_queue(),))) == []
    assert rows_of(db.execute('SELECT * FROM jobq.complete_batch(%s::bigint[], %s::int[])', ([], []))) == []
    assert one('SELECT jobq.renew(%s, %s)', 1, 2)[0] is None
    assert one('SELECT jobq.fail(%s, %s, %s)', 1, 2, 'late')[0] is None


def a_pipeline_works():
    queue = made_queue()
    with db.pipeline():
        cursors = [db.execute('SELECT jobq.enqueue(%s, queue => %s)', ('t', queue)) for _ in range(20)]
    ids = [cursor.fetchone()[0] for cursor in cursors]
    assert ids == sorted(set(ids)) and one('SELECT count(*) FROM jobq.claim(%s, 50)', queue)[0] == 20


def a_handler_in_a_prepared_statement_is_no_transaction_block():
    queue = made_queue()
    db.execute("""
        CREATE FUNCTION pg_temp.claims(queue text) RETURNS text LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM FROM jobq.claim(queue);
            RETURN 'allowed';
        EXCEPTION WHEN active_sql_transaction THEN
            RETURN 'refused';
        END $$""")
    db.execute("SET jobq.claim_in_transaction = 'error'")
    for _ in range(3):
        assert db.execute('SELECT pg_temp.claims(%s)', (queue,), prepare=True).fetchone()[0] == 'allowed'
    with db.transaction():
        db.execute('SAVEPOINT s')
        assert db.execute('SELECT pg_temp.claims(%s)', (queue,), prepare=True).fetchone()[0] == 'refused'
    db.execute('RESET jobq.claim_in_transaction')


def nothing_to_wait_for():
    queue = made_queue()
    assert rows_of(db.execute('CALL jobq.wait(%s, %s)', (queue, timedelta(milliseconds=20)))) == [{'ready': False}]
    assert rows_of(db.execute('CALL jobq.wait_any(%s, %s)', ([queue], '20 ms'))) == [{'queue': None}]
    db.execute('CALL jobq.wait(timeout => %s)', ('0',), prepare=True)


def waiting_needs_autocommit():
    """psycopg's default, a transaction around whatever is executed, is refused with what to do; then everything goes on."""
    with psycopg.connect() as other:
        for statement in ('CALL jobq.wait(%s, %s)', 'CALL jobq.wait_any(ARRAY[%s], %s)'):
            try:
                other.execute(statement, (Q, '0'))
            except psycopg.errors.ActiveSqlTransaction as error:
                assert 'autocommit' in error.diag.message_hint, error.diag.message_hint
            else:
                raise AssertionError('a wait in a transaction was taken')
            other.rollback()
        other.autocommit = True
        assert rows_of(other.execute('CALL jobq.wait(%s, %s)', (Q, '0'))) in ([{'ready': False}], [{'ready': True}])
        with other.pipeline():
            cursors = [other.execute('SELECT jobq.enqueue(%s, queue => %s)', ('t', Q)), other.execute('SELECT 1')]
        assert cursors[1].fetchone() == (1,)


def prepared_statements_work():
    queue = made_queue()
    for n in range(12):
        db.execute('SELECT jobq.enqueue(%s, %s, %s)', ('t', Jsonb(n), queue), prepare=True)
        found = db.execute('SELECT job_id, attempt, payload FROM jobq.claim(%s, %s)', (queue, 1), prepare=True).fetchone()
        assert found[2] == n
        assert db.execute('SELECT jobq.complete(%s, %s)', found[:2], prepare=True).fetchone()[0] is True


def main():
    db.execute('SELECT jobq.create_queue(%s)', (Q,))
    functions = {name: (kind, names) for name, kind, names in db.execute("""
        SELECT proname, prokind::text, coalesce((SELECT array_agg(n ORDER BY i) FROM unnest(proargnames) WITH ORDINALITY AS a(n, i)
            WHERE proargmodes IS NULL OR proargmodes[i] IN ('i', 'b')), '{}')
        FROM pg_proc WHERE pronamespace = 'jobq'::regnamespace AND has_function_privilege('jobq_admin', oid, 'EXECUTE')
          AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)""").fetchall()}
    tests = [('every public function is here', lambda: every_function_is_here(functions)),
             ('every argument is here', lambda: every_argument_is_here(functions))]
    for name in sorted(CALLS):
        for notation in ('positional', 'by name'):
            tests.append((f'{name}, {notation}', lambda n=name, k=notation: call(n, functions[n][0], k)))
    tests += [(test.__name__.replace('_', ' '), test) for test in (
        json_comes_back, intervals_are_understood, instants_are_understood, large_numbers_are_kept, null_means_the_default, nothing_in_hand,
        nothing_to_wait_for, waiting_needs_autocommit,
        a_pipeline_works, prepared_statements_work, a_handler_in_a_prepared_statement_is_no_transaction_block)]
    failed = 0
    print(f'1..{len(tests)}')
    for n, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f'ok {n} - psycopg: {name}')
        except Exception:
            failed += 1
            print(f'not ok {n} - psycopg: {name}')
            print('\n'.join('# ' + line for line in traceback.format_exc().splitlines()))
    for queue, in db.execute("SELECT queue FROM jobq.queues WHERE queue LIKE 'psycopg%'").fetchall():
        db.execute('SELECT jobq.drop_queue(%s, true)', (queue,))
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
