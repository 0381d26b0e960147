-- Batches: many jobs in one call, ids in the order of what was given.
\set VERBOSITY terse
SET client_min_messages = warning;
SET jobq.claim_in_transaction = 'allow';

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
FROM (SELECT format('delayed, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.delayed WHERE job_id = id
      UNION ALL
      SELECT format('ready, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.ready WHERE job_id = id
      UNION ALL
      SELECT format('running, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.lease WHERE job_id = id
      UNION ALL
      SELECT format('%s, attempt %s, tries %s', state, attempt, tries) FROM jobq.finished WHERE job_id = id) AS lines (line)
$$;

SELECT jobq.create_queue('batch', retry_base => '0') AS made;

-- enqueue_batch: one job an element, ids and turns in the array's order
CREATE TEMP TABLE batch AS
SELECT job_id, turn
FROM jobq.enqueue_batch('task', '["a", {"b": 1}, null, [1, 2], 5]', 'batch', 4, NULL, NULL, 6, 2, 'group', '{"h": 1}')
     WITH ORDINALITY AS ids (job_id, turn);
SELECT turn, task, payload, priority, max_attempts, max_crashes, group_key, job_key, headers, pg_temp.stands(job_id)
FROM batch JOIN jobq.job USING (job_id)
ORDER BY turn;
SELECT bool_and(b.turn = c.turn) AS in_turn, count(*)
FROM jobq.claim('batch', 10) WITH ORDINALITY AS c (job_id, attempt, task, payload, queue, group_key, headers, tries, max_attempts,
                                                   crashes, priority, last_error, enqueued_at, lease_expires_at, turn)
     JOIN batch b USING (job_id);

-- the defaults, and NULL for each of them
SELECT count(*) FROM jobq.enqueue_batch('defaults', '[1]');
SELECT count(*) FROM jobq.enqueue_batch('defaults', '[2]', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT queue, payload, j.priority, j.group_key, max_attempts, max_crashes, headers, jobq.cancel(job_id) AS cleaned
FROM jobq.job j JOIN jobq.jobs USING (job_id)
WHERE j.task = 'defaults' AND queue = 'default' AND payload IN ('1', '2')
ORDER BY payload;

-- no elements: no rows
SELECT count(*) FROM jobq.enqueue_batch('task', '[]', 'batch');

-- times apply to each
SELECT pg_temp.stands(job_id) FROM jobq.enqueue_batch('task', '[1, 2]', 'batch', run_at => clock_timestamp() + interval '1 h') AS ids (job_id);
SELECT pg_temp.stands(job_id) FROM jobq.enqueue_batch('task', '[1, 2]', 'batch', delay => '1 h') AS ids (job_id);
SELECT pg_temp.stands(job_id) FROM jobq.enqueue_batch('task', '[1, 2]', 'batch', delay => '0') AS ids (job_id);
SELECT count(*) FROM jobq.claim('batch', 10);

-- 100,000 elements in one call: distinct ids, ascending, each job in one line
SELECT jobq.create_queue('batch large') AS made;
SELECT count(DISTINCT job_id) AS jobs, bool_and(job_id > before IS NOT FALSE) AS in_order
FROM (SELECT job_id, lag(job_id) OVER (ORDER BY turn) AS before
      FROM jobq.enqueue_batch('task', (SELECT jsonb_agg(n) FROM generate_series(1, 100000) AS n), 'batch large')
           WITH ORDINALITY AS ids (job_id, turn)) AS jobs;
SELECT queue, ready FROM jobq.queue_counts('batch large', true);
SELECT count(*), min(payload::int), max(payload::int) FROM jobq.claim('batch large', 10000);
SELECT jobq.purge_queue('batch large');
SELECT jobq.drop_queue('batch large', true);

\pset format unaligned
\pset tuples_only on
SELECT arguments, pg_temp.outcome(format('SELECT jobq.enqueue_batch(%s)', arguments))
FROM (VALUES
    ('NULL, ''[1]'', ''batch'''),
    ('''t'', NULL, ''batch'''),
    (''''', ''[1]'', ''batch'''),
    (format('%L, ''[1]'', ''batch''', repeat('x', 64))),
    ('''t'', ''{"a": 1}'', ''batch'''),
    ('''t'', ''1'', ''batch'''),
    ('''t'', ''null'', ''batch'''),
    ('''t'', ''"[1]"'', ''batch'''),
    ('''t'', ''[1]'', ''batch'', 10'),
    ('''t'', ''[1]'', ''batch'', run_at => ''2030-01-01'', delay => ''1 s'''),
    ('''t'', ''[1]'', ''batch'', run_at => ''infinity'''),
    ('''t'', ''[1]'', ''batch'', delay => ''1 month'''),
    ('''t'', ''[1]'', ''batch'', delay => ''-1 s'''),
    ('''t'', ''[1]'', ''batch'', max_attempts => 0'),
    ('''t'', ''[1]'', ''batch'', max_crashes => 0'),
    (format('''t'', ''[1]'', ''batch'', group_key => %L', repeat('x', 256))),
    -- bad arguments are refused though there is nothing to enqueue
    ('''t'', ''[]'', ''batch'', 10'),
    ('''t'', ''[]'', ''batch missing''')) AS refused (arguments);
\pset format aligned
\pset tuples_only off

-- complete_batch: those that were still held are answered, the others are ignored
SELECT jobq.create_queue('batch ends', retry_base => '0') AS made;
CREATE TEMP TABLE held AS
SELECT turn, job_id FROM jobq.enqueue_batch('t', '[1, 2, 3, 4, 5]', 'batch ends') WITH ORDINALITY AS ids (job_id, turn);
SELECT count(*) FROM jobq.claim('batch ends', 5);
SELECT jobq.complete(job_id, 1) FROM held WHERE turn = 2;
SELECT jobq.snooze(job_id, 1, '0') FROM held WHERE turn = 4;
SELECT count(*) FROM jobq.claim('batch ends', 5);
SELECT array_agg(job_id ORDER BY turn) AS ids, array_agg(job_id ORDER BY turn DESC) AS reversed FROM held \gset
-- given in reverse, with an id that does not exist; the fourth is in its second attempt
SELECT turn
FROM jobq.complete_batch(:'reversed'::bigint[] || 0::bigint || (-1)::bigint, ARRAY[1, 1, 1, 1, 1, 1, 1], '[{"r": 5}, 4, "three", null, 1, 0, 0]') AS ids (job_id)
     JOIN held USING (job_id)
ORDER BY turn;
SELECT turn, pg_temp.stands(job_id), result FROM held LEFT JOIN jobq.finished USING (job_id) ORDER BY turn;
-- again: nothing is held
SELECT count(*) FROM jobq.complete_batch(:'ids', ARRAY[1, 1, 1, 1, 1]);

-- the same attempt twice in one call counts once
SELECT count(*)
FROM held, jobq.complete_batch(ARRAY[job_id, job_id, job_id], ARRAY[2, 2, 1])
WHERE turn = 4;
SELECT pg_temp.stands(job_id) FROM held WHERE turn = 4;

-- renew_batch: a row for each lease that is still held
TRUNCATE held;
INSERT INTO held
SELECT turn, job_id FROM jobq.enqueue_batch('t', '[1, 2, 3]', 'batch ends') WITH ORDINALITY AS ids (job_id, turn);
SELECT count(*) FROM jobq.claim('batch ends', 5);
SELECT jobq.cancel(job_id) FROM held WHERE turn = 2;
SELECT array_agg(job_id ORDER BY turn DESC) AS ids FROM held \gset
SELECT turn, lease_expires_at > clock_timestamp() + interval '59 min' AS renewed
FROM jobq.renew_batch(:'ids', ARRAY[1, 1, 1], '1 h') JOIN held USING (job_id)
ORDER BY turn;
SELECT turn, length, expires_at - clock_timestamp() > interval '59 min' AS renewed FROM jobq.lease JOIN held USING (job_id) ORDER BY turn;
-- without a length each keeps its own
SELECT count(*) FROM jobq.renew_batch(:'ids', ARRAY[1, 1, 1]);
SELECT turn, length, expires_at - clock_timestamp() > interval '59 min' AS renewed FROM jobq.lease JOIN held USING (job_id) ORDER BY turn;
SELECT count(*) FROM jobq.renew_batch(:'ids', ARRAY[2, 2, 0]);

-- complete_and_claim: what is lost is ignored, the rest completes, then the claim happens in any case
SELECT count(*) FROM jobq.enqueue_batch('next', '[1, 2, 3, 4]', 'batch ends');
SELECT task, payload, attempt, tries, queue FROM jobq.complete_and_claim(:'ids', ARRAY[1, 1, 2], 'batch ends', 2, 'a worker', '5 min', '["x", "y", "z"]');
SELECT turn, pg_temp.stands(job_id), result FROM held LEFT JOIN jobq.finished USING (job_id) ORDER BY turn;
SELECT worker, count(*), min(length) FROM jobq.lease WHERE worker = 'a worker' GROUP BY 1;
SELECT payload FROM jobq.complete_and_claim(:'ids', ARRAY[7, 7, 7], 'batch ends');
SELECT payload FROM jobq.complete_and_claim('{}', '{}', 'batch ends', 1);
SELECT payload FROM jobq.complete_and_claim('{}', '{}', 'batch ends', 1);
-- a job's own completion makes room for nothing else: what failed into the ready line may be claimed again
SELECT jobq.fail(job_id, 1, 'once') FROM held WHERE turn = 1;
SELECT attempt, tries, last_error FROM jobq.complete_and_claim('{}', '{}', 'batch ends', 10);

-- case 158: arrays that fit each other badly, and arrays of no use
\pset format unaligned
\pset tuples_only on
SELECT call, pg_temp.outcome(call)
FROM (VALUES
    ('SELECT jobq.complete_batch(''{}'', ''{}'')'),
    ('SELECT jobq.complete_batch(''{}'', ''{}'', ''[]'')'),
    ('SELECT jobq.complete_batch(''{1,2}'', ''{1}'')'),
    ('SELECT jobq.complete_batch(''{1}'', ''{1,2}'')'),
    ('SELECT jobq.complete_batch(''{1}'', ''{}'')'),
    ('SELECT jobq.complete_batch(''{1,2}'', ''{1,1}'', ''[1]'')'),
    ('SELECT jobq.complete_batch(''{1}'', ''{1}'', ''[1,2]'')'),
    ('SELECT jobq.complete_batch(''{1}'', ''{1}'', ''{"a": 1}'')'),
    ('SELECT jobq.complete_batch(''{1}'', ''{1}'', ''1'')'),
    ('SELECT jobq.complete_batch(''{1,NULL}'', ''{1,1}'')'),
    ('SELECT jobq.complete_batch(''{1,2}'', ''{NULL,1}'')'),
    ('SELECT jobq.complete_batch(''{{1,2},{3,4}}'', ''{{1,1},{1,1}}'')'),
    ('SELECT jobq.complete_batch(''{1,2,3,4}'', ''{{1,1},{1,1}}'')'),
    ('SELECT jobq.complete_batch(''[5:6]={1,2}'', ''[0:1]={1,1}'')'),
    ('SELECT jobq.complete_batch(NULL, ''{}'')'),
    ('SELECT jobq.complete_batch(''{}'', NULL)'),
    ('SELECT jobq.complete_and_claim(''{1,2}'', ''{1}'', ''batch ends'')'),
    ('SELECT jobq.complete_and_claim(''{1,NULL}'', ''{1,1}'', ''batch ends'')'),
    ('SELECT jobq.complete_and_claim(''{{1}}'', ''{1}'', ''batch ends'')'),
    ('SELECT jobq.complete_and_claim(''{1}'', ''{1}'', ''batch ends'', results => ''[]'')'),
    ('SELECT jobq.complete_and_claim(''{1}'', ''{1}'', ''batch ends'', results => ''{}'')'),
    ('SELECT jobq.complete_and_claim(''{}'', ''{}'', ''batch ends'', 0)'),
    ('SELECT jobq.renew_batch(''{}'', ''{}'')'),
    ('SELECT jobq.renew_batch(''{1,2}'', ''{1}'')'),
    ('SELECT jobq.renew_batch(''{1,NULL}'', ''{1,1}'')'),
    ('SELECT jobq.renew_batch(''{1}'', ''{NULL}'')'),
    ('SELECT jobq.renew_batch(''{{1}}'', ''{{1}}'')'),
    ('SELECT jobq.renew_batch(''{}'', ''{}'', ''1 month'')'),
    ('SELECT jobq.claim_from(''{}'')'),
    ('SELECT jobq.claim_from(''{batch,NULL}'')'),
    ('SELECT jobq.claim_from(''{{batch},{default}}'')'),
    ('SELECT jobq.claim_from(NULL)')) AS calls (call);
\pset format aligned
\pset tuples_only off

-- a refused batch completes nothing
TRUNCATE held;
INSERT INTO held SELECT 1, job_id FROM jobq.enqueue_batch('t', '[1]', 'batch ends') AS ids (job_id);
SELECT count(*) FROM jobq.claim('batch ends');
SELECT pg_temp.outcome(format('SELECT jobq.complete_batch(ARRAY[%s, NULL], ARRAY[1, 1])', job_id)), pg_temp.stands(job_id) FROM held;
SELECT pg_temp.outcome(format('SELECT jobq.complete_and_claim(ARRAY[%s], ARRAY[1], ''batch missing'')', job_id)), pg_temp.stands(job_id) FROM held;

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^batch( |$)';
\o
