"""What the tables hold while a function is tried: jobs in every standing, by its name; and whether that has changed."""
import re

from tables import contradictions

from catalog.database import db

# A value that each parameter takes, by its name; <dead> is the job of that standing (FIXTURE).
VALID = {
    'queue': 'tables', 'queues': '{tables}', 'task': 'task', 'payload': '{"a": 1}', 'payloads': '[1, 2]', 'priority': '3',
    'run_at': '2099-01-01', 'delay': '1 h', 'max_attempts': '3', 'max_crashes': '3', 'group_key': 'group', 'job_key': 'running',
    'job_key_mode': 'replace', 'headers': '{}', 'max_jobs': '3', 'worker': 'worker', 'lease': '1 min', 'job_id': '<running>', 'attempt': '1',
    'job_ids': '{<running>}', 'attempts': '{1}', 'result': '{}', 'results': '[{}]', 'error': 'error', 'retry_in': '1 h', 'retry': 'true',
    'reason': 'reason', 'retry_base': '1 s', 'retry_cap': '1 s', 'keep_completed': '1 s', 'keep_dead': '1 s', 'force': 'true', 'exact': 'true',
    'timeout': '0', 'ready': 'false', 'weight': '3',
    'schedule': '*/5 * * * *', 'count': '3', 'timezone': 'europe/berlin', 'after': '2026-03-28', 'name': 'tables',
    'overlap': 'queue', 'catch_up': 'all', 'starts_at': '2026-01-01', 'ends_at': '2099-01-01', 'jitter': '1 s', 'now': '2026-01-01',
    'undisturbed_since': '2026-01-01', 'command': 'SELECT 1', 'run_as': 'tables_caller'}
VALID_FOR = {('schedule_job', 'name'): 'tables new', ('schedule', 'name'): 'tables new', ('schedule', 'timeout'): '1 h', ('enqueue_sql', 'timeout'): '1 h',
             ('create_queue', 'queue'): 'tables new', ('retry', 'job_id'): '<dead>', ('reschedule', 'job_id'): '<delayed>'}

# Of these a call has one side or the other: the first one, unless a parameter of the other is tried.
EITHER = [({'run_at'}, {'delay'}), ({'task', 'payload', 'queue'}, {'command', 'timeout', 'run_as'})]
VALID_WITH_COMMAND = {('alter_schedule', 'name'): 'tables sql', ('alter_schedule', 'timeout'): '1 h'}

FIXTURE = """
CREATE FUNCTION pg_temp.fresh() RETURNS TABLE (standing text, id bigint) LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    PERFORM set_config('jobq.claim_in_transaction', 'allow', true);
    FOR line IN SELECT oid::regclass FROM pg_class WHERE relnamespace = 'jobq'::regnamespace AND relkind IN ('r', 'p') LOOP
        EXECUTE format('DELETE FROM %s', line);
    END LOOP;
    PERFORM jobq.create_queue('tables', retry_base => '0'), jobq.enqueue('task'), jobq.schedule_job('tables', '@hourly', 'task', overlap => 'allow'),
        jobq.schedule('tables sql', '@hourly', 'SELECT 1', run_as => 'tables_caller');
    FOREACH standing IN ARRAY ARRAY['completed', 'pruned', 'dead', 'replaced', 'expired', 'running'] LOOP
        PERFORM jobq.enqueue(standing, queue => 'tables', job_key => standing);
        SELECT job_id INTO id FROM jobq.claim('tables');
        CASE standing
            WHEN 'completed', 'pruned' THEN PERFORM jobq.complete(id, 1);
            WHEN 'dead' THEN PERFORM jobq.fail(id, 1, 'error', retry => false);
            WHEN 'replaced' THEN PERFORM jobq.enqueue('replaces', queue => 'tables', job_key => standing, job_key_mode => 'replace', delay => '1 h');
            ELSE
        END CASE;
        RETURN NEXT;
    END LOOP;
    UPDATE jobq.finished f SET prune_at = '2000-01-01' FROM jobq.job j WHERE j.job_id = f.job_id AND task = 'pruned';
    UPDATE jobq.lease l SET expires_at = claimed_at FROM jobq.job j WHERE j.job_id = l.job_id AND task = 'expired';
    RETURN QUERY SELECT name, jobq.enqueue(name, queue => 'tables', job_key => name, delay => later::interval)
        FROM (VALUES ('ready', NULL), ('also ready', NULL), ('cancelled', NULL), ('delayed', '1 h'), ('due', '1 h')) AS v (name, later);
    PERFORM jobq.cancel(job_id) FROM jobq.job WHERE task = 'cancelled';
    UPDATE jobq.delayed d SET run_at = '2000-01-01' FROM jobq.job j WHERE j.job_id = d.job_id AND task = 'due';
END
$$"""


def table_query(columns):
    """Each table with a digest of the columns that the condition chooses, in any order of the rows."""
    return ' UNION ALL '.join(
        f"SELECT '{table}', pg_catalog.md5(pg_catalog.string_agg(r::text, ',' ORDER BY r::text)) FROM (SELECT {names} FROM jobq.{table}) AS r"
        for table, names in db.rows(f"""
            SELECT relname, string_agg(quote_ident(attname), ', ') FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid
            WHERE relnamespace = 'jobq'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped AND {columns} GROUP BY 1"""
        )) + ' ORDER BY 1'


ALL_COLUMNS = table_query('true')
# What two calls that do the same leave alike.
LASTING_COLUMNS = table_query(r"attname !~ '(_id|^tag|^replaced_by)$' AND atttypid <> 'timestamptz'::regtype")


class Tables:
    def fresh(self):
        self.jobs = dict(db.rows('SELECT * FROM pg_temp.fresh()'))
        self.before = db.rows(ALL_COLUMNS)

    def changed(self):
        """The tables that are not as they were."""
        return [now[0] for then, now in zip(self.before, db.rows(ALL_COLUMNS), strict=True) if now != then]

    def contradictions(self):
        return [f'{what}: {row}' for what, row in contradictions(db.connection)]

    def literal(self, parameter, value):
        with_ids = re.sub(r'<(\w+)>', lambda standing: str(self.jobs[standing[1]]), value)
        return "'" + with_ids.replace("'", "''") + f"'::pg_catalog.{parameter.type}"

    def arguments(self, function, varied=None):
        """A value for each parameter of the function, but for those that the others exclude."""
        names = {p.name for p in function.parameters}
        excluded = {name for one, other in EITHER if one | other <= names for name in (one if varied in other else other)}
        valid = {**VALID_FOR, **(VALID_WITH_COMMAND if 'task' in excluded else {})}
        return {p.name: self.literal(p, valid.get((function.name, p.name), VALID[p.name])) for p in function.parameters if p.name not in excluded}

    def call(self, function):
        return function.call(self.arguments(function))

    def call_with(self, function, parameter, expression):
        return function.call({**self.arguments(function, parameter.name), parameter.name: expression})

    def call_without(self, function, parameter):
        return function.call({name: value for name, value in self.arguments(function, parameter.name).items() if name != parameter.name})


db.run(FIXTURE)
tables = Tables()
