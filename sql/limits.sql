-- Limits: bytes of names, ends of numbers and of time. No value crashes, wraps round or stops others.
\set VERBOSITY terse
SET client_min_messages = warning;
SET jobq.claim_in_transaction = 'allow';

-- what a statement ends with; whatever it did is undone
CREATE FUNCTION pg_temp.ends(command text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    state text;
    message text;
BEGIN
    EXECUTE command;
    RAISE SQLSTATE 'UNDO0';
EXCEPTION
    WHEN SQLSTATE 'UNDO0' THEN
        RETURN 'accepted';
    WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
        RETURN state || ' ' || regexp_replace(regexp_replace(message, '"(x|ä|€|😀)+"', '"..."'), ' -?\d+ is out', ' N is out');
END
$$;

SELECT jobq.create_queue('limits', retry_base => '0') AS made;
SELECT jobq.enqueue('t', queue => 'limits') AS job \gset
SELECT attempt FROM jobq.claim('limits');

-- case 156: each text argument with 0, 1, 63, 64, 255 and 256 bytes and more, of one-byte and of longer letters
CREATE TEMP TABLE place (turn serial, argument text, call text);
INSERT INTO place (argument, call) VALUES
    ('task', 'SELECT jobq.enqueue(%L, queue => ''limits'')'),
    ('task of a batch', 'SELECT jobq.enqueue_batch(%L, ''[1]'', queue => ''limits'')'),
    ('queue made', 'SELECT jobq.create_queue(%L)'),
    ('queue', 'SELECT jobq.claim(%L)'),
    ('queue of a list', 'SELECT jobq.claim_from(ARRAY[%L])'),
    ('worker', 'SELECT jobq.claim(''limits'', worker => %L)'),
    ('job_key', 'SELECT jobq.enqueue(''t'', queue => ''limits'', job_key => %L)'),
    ('group_key', 'SELECT jobq.enqueue(''t'', queue => ''limits'', group_key => %L)'),
    ('job_key cancelled', 'SELECT jobq.cancel_key(''limits'', %L)'),
    ('job_key_mode', 'SELECT jobq.enqueue(''t'', queue => ''limits'', job_key_mode => %L)'),
    ('error', format('SELECT jobq.fail(%s, 1, %%L)', :job)),
    ('reason', format('SELECT jobq.cancel(%s, %%L)', :job));
\pset format unaligned
\pset tuples_only on
SELECT argument, ends, string_agg(bytes::text, ', ' ORDER BY bytes) AS bytes
FROM (SELECT turn, argument, octet_length(v) AS bytes, pg_temp.ends(format(call, v)) AS ends
      FROM place, unnest(ARRAY['', 'x', repeat('x', 63), repeat('x', 64), repeat('x', 255), repeat('x', 256), repeat('x', 1000), repeat('x', 1000000),
                               repeat('ä', 31), repeat('ä', 32), repeat('€', 21), 'x' || repeat('€', 21), repeat('😀', 15), repeat('😀', 16),
                               repeat('ä', 127), repeat('ä', 128), repeat('😀', 64)]) AS texts (v)) AS ends
GROUP BY turn, argument, ends ORDER BY turn, min(bytes);

-- letters that a careless program trips over
SELECT name, pg_temp.ends(format('SELECT jobq.enqueue(%L, queue => ''limits'', job_key => %L, group_key => %L)', name, name, name)),
       pg_temp.ends(format('SELECT jobq.create_queue(%L)', name)), pg_temp.ends(format('SELECT jobq.claim(''limits'', worker => %L)', name))
FROM unnest(ARRAY[' ', '%s%n%d', E'\\', '''', '"', ';', '--', '$1', '{}', 'NULL', E'a\tb']) AS names (name);

-- case 157, 161: the ends of int and bigint in each argument that is one
CREATE TEMP TABLE number (turn serial, argument text, call text, is_bigint boolean);
INSERT INTO number (argument, call, is_bigint) VALUES
    ('priority', 'SELECT jobq.enqueue(''t'', queue => ''limits'', priority => %s)', false),
    ('max_attempts', 'SELECT jobq.enqueue(''t'', queue => ''limits'', max_attempts => %s)', false),
    ('max_crashes', 'SELECT jobq.enqueue(''t'', queue => ''limits'', max_crashes => %s)', false),
    ('max_attempts of a queue', 'SELECT jobq.alter_queue(''limits'', max_attempts => %s)', false),
    ('max_crashes of a queue', 'SELECT jobq.alter_queue(''limits'', max_crashes => %s)', false),
    ('max_jobs', 'SELECT jobq.claim(''limits'', %s)', false),
    ('max_jobs of a list', 'SELECT jobq.claim_from(''{limits}'', %s)', false),
    ('max_jobs of complete_and_claim', 'SELECT jobq.complete_and_claim(''{}'', ''{}'', ''limits'', %s)', false),
    ('max_jobs of sweep', 'SELECT jobq.sweep(%s)', false),
    ('max_jobs of retry_dead', 'SELECT jobq.retry_dead(''limits'', %s)', false),
    ('attempt', format('SELECT jobq.complete(%s, %%s)', :job), false),
    ('attempts', format('SELECT jobq.complete_batch(ARRAY[%s], ARRAY[%%s])', :job), false),
    ('priority rescheduled', format('SELECT jobq.reschedule(%s, priority => %%s)', :job), false),
    ('job_id', 'SELECT jobq.renew(%s, 1)', true),
    ('job_id completed', 'SELECT jobq.complete(%s, 1)', true),
    ('job_id cancelled', 'SELECT jobq.cancel(%s)', true),
    ('job_id retried', 'SELECT jobq.retry(%s)', true),
    ('job_ids', 'SELECT jobq.renew_batch(ARRAY[%s]::bigint[], ARRAY[1])', true);
SELECT argument, ends, string_agg(n::text, ', ' ORDER BY n) AS numbers
FROM (SELECT turn, argument, n, pg_temp.ends(format(call, format('(%s)::%s', n, CASE WHEN is_bigint THEN 'bigint' ELSE 'int' END))) AS ends
      FROM number, unnest(ARRAY[-9223372036854775808, -9223372036854775807, -2147483649, -2147483648, -2147483647, -1, 0, 1, 9, 10, 10000, 10001,
                                2147483646, 2147483647, 2147483648, 9007199254740993, 9223372036854775806, 9223372036854775807]) AS numbers (n)
      WHERE is_bigint OR n BETWEEN -2147483648 AND 2147483647) AS ends
GROUP BY turn, argument, ends ORDER BY turn, min(n);

-- case 157: every interval argument
CREATE TEMP TABLE span (turn serial, argument text, call text);
INSERT INTO span (argument, call) VALUES
    ('delay', 'SELECT jobq.enqueue(''t'', queue => ''limits'', delay => %L)'),
    ('delay of a batch', 'SELECT jobq.enqueue_batch(''t'', ''[1]'', ''limits'', delay => %L)'),
    ('lease', 'SELECT jobq.claim(''limits'', lease => %L)'),
    ('lease renewed', format('SELECT jobq.renew(%s, 1, %%L)', :job)),
    ('lease of a queue', 'SELECT jobq.alter_queue(''limits'', lease => %L)'),
    ('retry_in', format('SELECT jobq.fail(%s, 1, ''e'', %%L)', :job)),
    ('delay of snooze', format('SELECT jobq.snooze(%s, 1, %%L)', :job)),
    ('retry_base', 'SELECT jobq.alter_queue(''limits'', retry_base => %L)'),
    ('retry_cap', 'SELECT jobq.alter_queue(''limits'', retry_cap => %L)'),
    ('keep_completed', 'SELECT jobq.alter_queue(''limits'', keep_completed => %L)'),
    ('keep_dead', 'SELECT jobq.alter_queue(''limits'', keep_dead => %L)');
SELECT argument, ends, string_agg(i::text, ', ' ORDER BY n) AS intervals
FROM (SELECT turn, argument, n, i, pg_temp.ends(format(call, i)) AS ends
      FROM span, unnest(ARRAY['-178000000 years', '-2147483647 days', '-1 us', '0', '1 us', '999999 us', '1 s', '24 h', '1 day', '24 h 1 us', '1 day 1 us', '1 mon', '1 mon -1 day',
                              '1 day -1 us', '-1 day 25 h', '365000 days', '1000000 days', '106751991 days', '106751992 days', '2147483647 days', '2562047788 h', '2147483647 days 2562047788 h',
                              '999 years', '1000 years', '178000000 years']::interval[]) WITH ORDINALITY AS intervals (i, n)) AS ends
GROUP BY turn, argument, ends ORDER BY turn, min(n);

-- case 161: every instant
CREATE TEMP TABLE instant (turn serial, argument text, call text);
INSERT INTO instant (argument, call) VALUES
    ('run_at', 'SELECT jobq.enqueue(''t'', queue => ''limits'', run_at => %L)'),
    ('run_at of a batch', 'SELECT jobq.enqueue_batch(''t'', ''[1]'', ''limits'', run_at => %L)'),
    ('run_at of retry', 'SELECT jobq.retry(jobq.enqueue(''t'', queue => ''limits''), %L)'),
    ('run_at of reschedule', 'SELECT jobq.reschedule(jobq.enqueue(''t'', queue => ''limits''), %L)');
SELECT argument, ends, string_agg(at, ', ' ORDER BY n) AS instants
FROM (SELECT turn, argument, n, at, pg_temp.ends(format(call, at)) AS ends
      FROM instant, unnest(ARRAY['-infinity', '4714-11-24 00:00:00+00 BC', '4713-01-01 BC', '0001-01-01 BC', '1970-01-01', '2000-01-01', '2099-01-01', '9999-12-31', '294276-12-31 23:59:59.999999+00', 'infinity'])
           WITH ORDINALITY AS instants (at, n)) AS ends
GROUP BY turn, argument, ends ORDER BY turn, min(n);
\pset format aligned
\pset tuples_only off
-- the job was touched by none of it
SELECT attempt, state FROM jobq.jobs WHERE job_id = :job;
SELECT jobq.complete(:job, 1);
-- a job at the end of time waits there, and a sweep passes it by
SELECT jobq.enqueue('t', queue => 'limits', run_at => '294276-12-31 23:59:59.999999+00') AS job \gset
SELECT count(*) FROM jobq.sweep();
SELECT state FROM jobq.jobs WHERE job_id = :job;
SELECT jobq.drop_queue('limits', true);

-- case 67, 159: every sequence beyond 2^31 and beyond 2^53, and the whole of a life there
CREATE DATABASE jobq_limits;
\set here :DBNAME
\c jobq_limits
SET client_min_messages = warning;
CREATE EXTENSION jobq;
CREATE FUNCTION pg_temp.lives() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    name text := 'limits ' || random();
    a bigint;
    b bigint;
    ids bigint[];
    done bigint;
BEGIN
    ASSERT jobq.create_queue(name, retry_base => '0');
    a := jobq.enqueue('t', queue => name, job_key => 'k');
    ASSERT a = jobq.enqueue('t', queue => name, job_key => 'k');
    ASSERT a = jobq.enqueue('t', queue => name, job_key => 'k', job_key_mode => 'replace', delay => '1 h');
    ASSERT a = jobq.enqueue('t', queue => name, job_key => 'k', job_key_mode => 'replace');
    SELECT array_agg(job_id) INTO ids FROM jobq.enqueue_batch('t', '[1, 2, 3]', name) AS b (job_id);
    ASSERT (SELECT jobq.fail(job_id, attempt, 'e') = 'ready' AND job_id = a FROM jobq.claim(name));
    ASSERT (SELECT count(jobq.renew(job_id, attempt)) = 4 FROM jobq.claim(name, 10));
    ASSERT jobq.snooze(a, 2, '0') AND NOT jobq.complete(a, 2);
    SELECT count(*) INTO done FROM jobq.complete_batch(ids, '{1,1,1}');
    ASSERT done = 3, done;
    ASSERT (SELECT job_id = a FROM jobq.complete_and_claim('{}', '{}', name));
    b := jobq.enqueue('t', queue => name, job_key => 'k', job_key_mode => 'replace');
    ASSERT b > a AND jobq.fail(a, 3, 'e') = 'cancelled';
    ASSERT (SELECT reason = 'replaced by job ' || b FROM jobq.history WHERE job_id = a);
    ASSERT jobq.reschedule(b, '2099-01-01') AND jobq.reschedule(b, clock_timestamp()) AND jobq.cancel(b) AND jobq.retry(b);
    ASSERT (SELECT job_id = b FROM jobq.claim(name));
    UPDATE jobq.lease SET expires_at = '2000-01-01', claimed_at = clock_timestamp() WHERE job_id = b;
    ASSERT (SELECT retried = 1 FROM jobq.sweep());
    ASSERT (SELECT jobq.fail(job_id, attempt, 'e', retry => false) = 'dead' FROM jobq.claim(name)) AND jobq.retry_dead(name) = 1;
    ASSERT jobq.purge_queue(name) = 1;
    PERFORM jobq.drop_queue(name, true);
    RETURN CASE WHEN least(a, b) > 2::numeric ^ 53 THEN 'beyond 2^53' WHEN least(a, b) > 2::numeric ^ 31 THEN 'beyond 2^31' ELSE 'below 2^31' END;
END
$$;
SELECT pg_temp.lives();
CREATE FUNCTION pg_temp.set_all(value bigint) RETURNS bigint LANGUAGE sql AS $$
SELECT count(setval(format('%I.%I', schemaname, sequencename), value)) FROM pg_sequences WHERE schemaname = 'jobq'
$$;
SELECT pg_temp.set_all(2147483646) > 0 AS set;
SELECT count(DISTINCT pg_temp.lives() || n) FROM generate_series(1, 10) AS n;
SELECT pg_temp.set_all((2::numeric ^ 31 + 5)::bigint) > 0 AS set;
SELECT pg_temp.lives();
SELECT pg_temp.set_all((2::numeric ^ 53 + 1)::bigint) > 0 AS set;
SELECT pg_temp.lives();
-- at the very end enqueue is an error, not a second job of one id, and what is there goes on
SELECT jobq.enqueue('t') AS job \gset
SELECT pg_temp.set_all(9223372036854775806) > 0 AS set;
SELECT jobq.enqueue('last') = 9223372036854775807 AS last;
SELECT jobq.enqueue('beyond');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM jobq.enqueue_batch('beyond', '[1, 2]');
\echo :LAST_ERROR_SQLSTATE
SELECT task, jobq.complete(job_id, attempt) FROM jobq.claim('default', 10);
\c :here
DROP DATABASE jobq_limits;
