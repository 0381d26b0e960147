-- Enqueue: what a job is made of, when it may be claimed, and what is refused.
\set VERBOSITY terse
SET client_min_messages = warning;

-- what a statement ends with: its SQLSTATE, message and hint, or "accepted"
CREATE FUNCTION pg_temp.outcome(command text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    state text;
    message text;
    hint text;
BEGIN
    EXECUTE command;
    RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
    RETURN state || ' ' || message || coalesce(' [' || nullif(hint, '') || ']', '');
END
$$;

-- where a job stands: its line, or its lines if there were (wrongly) more than one
CREATE FUNCTION pg_temp.stands(id bigint) RETURNS text
LANGUAGE sql AS $$
SELECT coalesce(string_agg(line, ' AND '), 'nowhere')
       || CASE WHEN EXISTS (SELECT FROM jobq.job WHERE job_id = id) THEN '' ELSE ', no job' END
FROM (SELECT 'delayed' FROM jobq.delayed WHERE job_id = id
      UNION ALL
      SELECT 'ready' FROM jobq.ready WHERE job_id = id
      UNION ALL
      SELECT 'running' FROM jobq.lease WHERE job_id = id
      UNION ALL
      SELECT 'ended' FROM jobq.finished WHERE job_id = id) AS lines (line)
$$;

SELECT jobq.create_queue('enqueue') AS made;

-- everything given, by position and by name
SELECT jobq.enqueue('task', '{"n": 1}', 'enqueue', 3, NULL, NULL, 4, 2, 'group', 'by position', 'keep', '{"h": 1}') AS job \gset
SELECT task, payload, headers, priority, group_key, job_key, max_attempts, max_crashes
FROM jobq.job WHERE job_id = :job;
SELECT jobq.enqueue(headers => '{"h": 1}', job_key_mode => 'keep', job_key => 'by name', group_key => 'group', max_crashes => 2,
                    max_attempts => 4, delay => NULL, run_at => NULL, priority => 3, queue => 'enqueue', payload => '{"n": 1}',
                    task => 'task') AS job \gset
SELECT task, payload, headers, priority, group_key, job_key, max_attempts, max_crashes, enqueued_at <= clock_timestamp() AS enqueued
FROM jobq.job WHERE job_id = :job;
SELECT pg_temp.stands(:job);

-- the defaults, and NULL for each of them
SELECT jobq.enqueue('defaults') AS job \gset
SELECT jobq.enqueue('defaults', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) AS null_job \gset
SELECT queue, j.task, payload, headers, j.priority, j.group_key, j.job_key, max_attempts, max_crashes
FROM jobq.job j JOIN jobq.jobs USING (job_id)
WHERE job_id IN (:job, :null_job);
SELECT jobq.cancel(:job) AND jobq.cancel(:null_job) AS cleaned;

-- limits left NULL follow the queue's setting at the time they are looked at
SELECT jobq.enqueue('follows', queue => 'enqueue', priority => 0) AS job \gset
SELECT max_attempts, max_crashes FROM jobq.job WHERE job_id = :job;
SELECT jobq.alter_queue('enqueue', max_attempts => 77, max_crashes => 66);
SELECT task, max_attempts FROM jobq.claim('enqueue');
SELECT jobq.alter_queue('enqueue', max_attempts => 10, max_crashes => 3);

-- a payload is any JSON value, and comes back as it went in (case 79: of any size, it is in no notification)
SELECT jobq.create_queue('enqueue payload') AS made;
SELECT count(jobq.enqueue('t', payload, 'enqueue payload', headers => payload))
FROM (VALUES (jsonb 'null'), ('true'), ('1e30'), ('"text with \"quotes\" and \u00e4"'), ('[]'), ('[1, [2, {"a": null}]]'), ('{"a": {}}'))
     AS payloads (payload);
SELECT payload, headers FROM jobq.claim('enqueue payload', 100);
SELECT size, jobq.enqueue('t', jsonb_build_object('text', repeat('x', size)), 'enqueue payload') IS NOT NULL AS enqueued
FROM unnest(ARRAY[7990, 8000, 10000000]) AS sizes (size);
SELECT length(payload ->> 'text') FROM jobq.claim('enqueue payload', 100);

-- first in, first out within a priority; 0 goes first and 9 last
SELECT jobq.create_queue('enqueue order') AS made;
SELECT count(jobq.enqueue('t', to_jsonb(format('%s.%s', priority, turn)), 'enqueue order', priority))
FROM generate_series(1, 3) AS turns (turn), unnest(ARRAY[9, 5, 0]) AS priorities (priority);
SELECT payload FROM jobq.claim('enqueue order', 4);
SELECT payload FROM jobq.claim('enqueue order', 100);

-- case 39: a job waits for its time, and no longer
SELECT jobq.create_queue('enqueue time') AS made;
SELECT call, pg_temp.stands(jobq.enqueue('t', queue => 'enqueue time', run_at => run_at, delay => delay))
FROM (VALUES
    ('nothing', NULL::timestamptz, NULL::interval),
    ('run_at in an hour', clock_timestamp() + interval '1 h', NULL),
    ('run_at an hour ago', clock_timestamp() - interval '1 h', NULL),
    ('run_at before Christ', '4713-01-01 BC', NULL),
    ('run_at in the last year', '294276-12-31 23:59:59.999999+00', NULL),
    ('delay of 1 h', NULL, '1 h'),
    ('delay of 0', NULL, '0'),
    ('delay of 10000 days', NULL, '10000 days')) AS times (call, run_at, delay);
SELECT count(*) FROM jobq.claim('enqueue time', 100);
SELECT count(*) FROM jobq.claim('enqueue time', 100);

-- case 167: the session's time zone changes nothing: a day is 24 hours, also where clocks go forward
SET TimeZone = 'America/New_York';
SELECT count(jobq.enqueue('whole days', to_jsonb(days), 'enqueue time', delay => make_interval(days => days)))
FROM unnest(ARRAY[91, 182, 273]) AS delays (days);
SELECT payload AS days, abs(extract(epoch FROM run_at - enqueued_at) - payload::int * 86400) < 1 AS whole_days
FROM jobq.job JOIN jobq.delayed USING (job_id)
WHERE task = 'whole days'
ORDER BY payload;
SET TimeZone = 'Asia/Kathmandu';
SELECT jobq.enqueue('t', queue => 'enqueue time', run_at => '2099-01-01 00:00:00+00') AS job \gset
RESET TimeZone;
SELECT run_at = '2099-01-01 00:00:00+00' AS same FROM jobq.delayed WHERE job_id = :job;

-- case 163: the instants are the clock's, not the transaction's
BEGIN;
SELECT pg_sleep(0.003);
SELECT jobq.enqueue('t', queue => 'enqueue time', delay => '1 h') AS job \gset
SELECT enqueued_at - now() >= interval '3 ms' AS enqueued, run_at - now() >= interval '1 h 3 ms' AS due
FROM jobq.job JOIN jobq.delayed USING (job_id)
WHERE job_id = :job;
-- due by the clock, though not yet when the transaction began
SELECT pg_temp.stands(jobq.enqueue('t', queue => 'enqueue time', run_at => now() + interval '1 ms'));
COMMIT;

-- what is refused, and how it is said
\pset format unaligned
\pset tuples_only on
SELECT arguments, pg_temp.outcome(format('SELECT jobq.enqueue(%s)', arguments))
FROM (VALUES
    ('NULL, queue => ''enqueue'''),
    (''''', queue => ''enqueue'''),
    ('''t'', queue => '''''),
    ('''t'', queue => ''sql/10'''),
    ('''t'', queue => ''enqueue'', priority => -1'),
    ('''t'', queue => ''enqueue'', priority => 10'),
    ('''t'', queue => ''enqueue'', priority => 2147483647'),
    ('''t'', queue => ''enqueue'', priority => -2147483648'),
    ('''t'', queue => ''enqueue'', run_at => ''2030-01-01'', delay => ''1 s'''),
    ('''t'', queue => ''enqueue'', run_at => ''infinity'''),
    ('''t'', queue => ''enqueue'', run_at => ''-infinity'''),
    ('''t'', queue => ''enqueue'', delay => ''-1 us'''),
    ('''t'', queue => ''enqueue'', delay => ''1 day -1 s'''),
    ('''t'', queue => ''enqueue'', delay => ''-1 day 25 h'''),
    ('''t'', queue => ''enqueue'', delay => ''1 month'''),
    ('''t'', queue => ''enqueue'', delay => ''1 year'''),
    ('''t'', queue => ''enqueue'', delay => ''1 month -30 days'''),
    ('''t'', queue => ''enqueue'', delay => ''178000000 years'''),
    ('''t'', queue => ''enqueue'', delay => ''2147483647 days'''),
    ('''t'', queue => ''enqueue'', delay => ''106751991 days'''),
    ('''t'', queue => ''enqueue'', delay => ''2147483647 days 2562047788 h'''),
    ('''t'', queue => ''enqueue'', max_attempts => 0'),
    ('''t'', queue => ''enqueue'', max_attempts => -1'),
    ('''t'', queue => ''enqueue'', max_crashes => 0'),
    ('''t'', queue => ''enqueue'', max_crashes => -1'),
    ('''t'', queue => ''enqueue'', job_key_mode => ''kept'''),
    ('''t'', queue => ''enqueue'', job_key_mode => '''''),
    ('''t'', queue => ''enqueue'', job_key => ''k'', job_key_mode => ''KEEP'''),
    -- case 154: no JSON holds a zero byte, and the session goes on
    ('''t'', ''{"a": "\u0000"}'', ''enqueue'''),
    ('''t'', ''{"a": "\ud800"}'', ''enqueue'''),
    ('''t'', ''{"a": '', ''enqueue''')) AS refused (arguments);

-- case 156: names and keys at their limits, in bytes
SELECT argument, length, letter, pg_temp.outcome(format('SELECT jobq.enqueue(%s)', CASE argument
    WHEN 'task' THEN format('%L, queue => ''enqueue''', repeat(letter, length))
    WHEN 'queue' THEN format('''t'', queue => %L', repeat(letter, length))
    WHEN 'job_key' THEN format('''t'', queue => ''enqueue'', job_key => %L', repeat(letter, length))
    ELSE format('''t'', queue => ''enqueue'', group_key => %L', repeat(letter, length))
    END))
FROM (VALUES
    ('task', 63, 'x'), ('task', 64, 'x'), ('task', 31, 'ä'), ('task', 32, 'ä'), ('task', 1000000, 'x'),
    ('queue', 64, 'x'), ('queue', 32, 'ä'),
    ('job_key', 255, 'x'), ('job_key', 256, 'x'), ('job_key', 127, 'ä'), ('job_key', 128, 'ä'), ('job_key', 1000000, 'x'),
    ('group_key', 255, 'x'), ('group_key', 256, 'x'), ('group_key', 85, '€'), ('group_key', 86, '€'), ('group_key', 1000000, 'x'))
    AS names (argument, length, letter);
\pset format aligned
\pset tuples_only off

-- nothing refused left a job behind
SELECT count(*) FROM jobq.job j JOIN jobq.jobs USING (job_id)
WHERE queue = 'enqueue' AND j.task = 't' AND j.job_key IS NULL AND j.group_key IS NULL;

-- promise 1: each job of this file stands in exactly one line
SELECT pg_temp.stands(job_id) AS stands, count(*)
FROM jobq.job
WHERE queue_id IN (SELECT j.queue_id FROM jobq.job j JOIN jobq.jobs USING (job_id) WHERE queue LIKE 'enqueue%')
GROUP BY 1 ORDER BY 1;

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^enqueue( |$)';
\o
