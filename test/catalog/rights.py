"""Who may do what, by doing it. What is let through may end with any error but that of missing rights."""
import re

from catalog.database import db, functions, relations, said
from catalog.standings import tables

# Who may call each function and read each relation: PUBLIC none of them, jobq_admin what the others may.
CALLERS = {
    **dict.fromkeys(['enqueue', 'enqueue_unique', 'enqueue_batch', 'cancel_key'], 'producer'),
    **dict.fromkeys(['claim', 'claim_from', 'renew', 'renew_batch', 'complete', 'complete_batch', 'complete_and_claim', 'fail', 'snooze', 'sweep',
                     'wait', 'wait_any'], 'worker'),
    **dict.fromkeys(['queue_counts', 'lane_states', 'health'], 'reader'),
    'next_runs': 'reader scheduler',
    **dict.fromkeys(['schedule', 'schedule_job', 'alter_schedule', 'unschedule', 'pause_schedule', 'resume_schedule', 'run_schedule', 'enqueue_sql',
                     'cancel_sql'], 'scheduler'),
    **dict.fromkeys(['create_queue', 'alter_queue', 'drop_queue', 'pause_queue', 'resume_queue', 'purge_queue', 'set_group', 'cancel', 'retry',
                     'retry_dead', 'reschedule', 'adopt'], 'admin'),
    **dict.fromkeys(['queue_changed', 'require_preload', 'warn_if_nothing_runs', 'fire_schedules'], 'owner')}
READERS = {
    **dict.fromkeys(['jobs', 'history', 'dead_jobs', 'failures', 'queues', 'workers', 'lanes', 'groups'], 'reader'),
    **dict.fromkeys(['schedules', 'schedule_runs', 'sql_jobs'], 'reader scheduler'),
    **dict.fromkeys(['queue', 'group_weight', 'job', 'ready', 'delayed', 'lease', 'finished', 'key', 'failure', 'home', 'schedule', 'schedule_run',
                     'sql_command', 'job_number', 'queue_number', 'schedule_number'], 'owner')}
ROLES = ['producer', 'worker', 'reader', 'scheduler', 'admin']


def may_call(role, name):
    return {'admin': CALLERS[name] != 'owner', 'granted': name == 'enqueue'}.get(role, role in CALLERS[name].split())


def may_read(role, name):
    return READERS[name] != 'owner' and (role == 'admin' or role in READERS[name].split())


def judge(role, statement, error, is_allowed):
    # Who may call a function is told apart from whose schedule or command it is.
    is_refused = bool(error and error.sqlstate == '42501' and not re.search('must be owner of schedule|run as another role', said(error)))
    if is_allowed == is_refused:
        yield f'{role}: {statement}: {said(error)}'


WRITES = ['INSERT INTO {0} DEFAULT VALUES', 'UPDATE {0} SET {column} = {column}', 'DELETE FROM {0}', 'TRUNCATE {0}', 'LOCK {0}', 'SELECT FROM {0} FOR UPDATE',
          'ALTER {kind} {0} OWNER TO CURRENT_USER', 'ALTER {kind} {0} SET SCHEMA public', 'ALTER {kind} {0} RENAME TO planted', 'DROP {kind} {0}',
          'COMMENT ON {kind} {0} IS NULL', 'CREATE RULE planted AS ON INSERT TO {0} DO INSTEAD NOTHING',
          'CREATE TRIGGER planted BEFORE INSERT ON {0} FOR EACH STATEMENT EXECUTE FUNCTION suppress_redundant_updates_trigger()']
TABLE_WRITES = ['CREATE POLICY planted ON {0}', 'CREATE TABLE planted () INHERITS ({0})', 'CREATE TABLE planted (c bigint REFERENCES {0})',
                'CREATE INDEX ON {0} ((1))', 'CREATE STATISTICS planted ON {column}, ctid FROM {0}', 'ALTER TABLE {0} DISABLE TRIGGER ALL',
                'ALTER TABLE {0} ENABLE ROW LEVEL SECURITY', 'ALTER TABLE {0} ALTER {column} SET DEFAULT NULL']
SEQUENCE_WRITES = ["SELECT nextval('{0}')", "SELECT setval('{0}', 1)", 'ALTER SEQUENCE {0} RESTART', 'DROP SEQUENCE {0}']
SCHEMA_WRITES = [
    'CREATE TABLE jobq.planted ()', 'CREATE VIEW jobq.planted AS SELECT 1', 'CREATE SEQUENCE jobq.planted', 'CREATE TYPE jobq.planted AS (a int)',
    'CREATE DOMAIN jobq.planted AS int', 'CREATE FUNCTION jobq.planted() RETURNS int LANGUAGE sql RETURN 1',
    'CREATE FUNCTION jobq.enqueue(unknown) RETURNS int LANGUAGE sql RETURN 1', 'CREATE OPERATOR jobq.= (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq)',
    'CREATE COLLATION jobq.planted FROM "C"', 'ALTER SCHEMA jobq RENAME TO planted', 'ALTER SCHEMA jobq OWNER TO CURRENT_USER', 'DROP SCHEMA jobq CASCADE',
    'DROP EXTENSION jobq', 'ALTER EXTENSION jobq UPDATE', 'ALTER EXTENSION jobq ADD TABLE public.planted', 'ALTER TYPE jobq.claimed_job ADD ATTRIBUTE planted int',
    'CREATE EVENT TRIGGER planted ON ddl_command_end EXECUTE FUNCTION suppress_redundant_updates_trigger()', 'CREATE CAST (jsonb AS text) WITH INOUT AS IMPLICIT',
    'ALTER DEFAULT PRIVILEGES FOR ROLE postgres GRANT ALL ON TABLES TO PUBLIC', 'SET ROLE postgres', 'SET SESSION AUTHORIZATION postgres',
    "SET session_replication_role = 'replica'", 'ALTER ROLE jobq_admin SUPERUSER', 'GRANT pg_read_all_data TO CURRENT_USER',
    "SELECT set_config('role', 'postgres', false) FROM jobq.enqueue('t')"]
FUNCTION_WRITES = ['ALTER {kind} jobq.{0} OWNER TO CURRENT_USER', 'ALTER {kind} jobq.{0} SECURITY DEFINER', 'ALTER {kind} jobq.{0} SET search_path = public',
                   'ALTER {kind} jobq.{0} RENAME TO planted', 'DROP {kind} jobq.{0}', 'COMMENT ON {kind} jobq.{0} IS NULL']
KINDS = {'r': 'TABLE', 'v': 'VIEW', 'S': 'SEQUENCE'}
RIGHTS = """SELECT 'function', proname, proacl::text FROM pg_proc WHERE pronamespace = 'jobq'::regnamespace
    UNION ALL SELECT 'relation', relname, relacl::text FROM pg_class WHERE relnamespace = 'jobq'::regnamespace
    UNION ALL SELECT 'type', typname, typacl::text FROM pg_type WHERE typnamespace = 'jobq'::regnamespace
    UNION ALL SELECT 'schema', nspname, nspacl::text FROM pg_namespace WHERE nspname = 'jobq' ORDER BY 1, 2"""


def make_roles():
    db.run('CREATE ROLE tables_attacker; CREATE ROLE tables_caller LOGIN IN ROLE jobq_admin; CREATE ROLE tables_nobody LOGIN; CREATE ROLE tables_granted LOGIN')
    db.run('GRANT EXECUTE ON ALL ROUTINES IN SCHEMA jobq TO tables_caller; GRANT USAGE ON SCHEMA jobq TO tables_granted;'
           'GRANT EXECUTE ON FUNCTION jobq.enqueue TO tables_granted')
    for role in ROLES:
        db.run(f'CREATE ROLE tables_{role} LOGIN IN ROLE jobq_{role}')
    for role in (*ROLES, 'nobody', 'granted'):
        db.run(f'CREATE SCHEMA AUTHORIZATION tables_{role}')


def calls_and_reads(role, session):
    tables.fresh()
    for function in functions:
        call = tables.call(function)
        yield from judge(role, call, session.ends_undone(call), may_call(role, function.name))
    for name in relations:
        yield from judge(role, f'reads {name}', session.ends_undone(f'SELECT * FROM jobq.{name}'), may_read(role, name))


def writes():
    """Statements, and whether the server refuses them of itself, as it does with a view of several tables."""
    for name, kind in relations.items():
        column, = db.run(f"SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = 'jobq.{name}'::regclass AND attnum = 1").fetchone()
        for statement in SEQUENCE_WRITES if kind == 'S' else WRITES + TABLE_WRITES * (kind != 'v'):
            yield statement.format(f'jobq.{name}', kind=KINDS[kind], column=column), kind == 'v'
    for function in functions:
        for statement in FUNCTION_WRITES:
            yield statement.format(function.name, kind='PROCEDURE' if function.is_procedure else 'FUNCTION'), False
    yield from ((statement, False) for statement in SCHEMA_WRITES)


def nothing_is_written(role, session):
    rights = db.rows(RIGHTS)
    for statement, is_refused_in_any_case in writes():
        error = session.ends_undone(statement)
        if not (error and (error.sqlstate == '42501' or is_refused_in_any_case and error.sqlstate in ('55000', '42809'))):
            yield f'{role}: {statement}: {said(error)}'
    for what in (*(f'jobq.{name}' for name in relations), *(f'ROUTINE jobq.{function.name}' for function in functions), 'SCHEMA jobq', 'TYPE jobq.claimed_job'):
        session.ends(f'GRANT ALL ON {what} TO PUBLIC')
    if db.rows(RIGHTS) != rights:
        yield f'{role}: rights were given away'
