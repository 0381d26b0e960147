-- Complete: a job that is done ends once, with its result.
\set VERBOSITY terse
SET client_min_messages = warning;

-- where a job stands: its line, or its lines if there were (wrongly) more than one
CREATE FUNCTION pg_temp.stands(id bigint) RETURNS text
LANGUAGE sql AS $$
SELECT coalesce(string_agg(line, ' AND '), 'nowhere')
       || CASE WHEN EXISTS (SELECT FROM jobq.job WHERE job_id = id) THEN '' ELSE ', no job' END
       || CASE WHEN EXISTS (SELECT FROM jobq.key WHERE job_id = id) THEN ', has the key' ELSE '' END
FROM (SELECT format('delayed, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.delayed WHERE job_id = id
      UNION ALL
      SELECT format('ready, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.ready WHERE job_id = id
      UNION ALL
      SELECT format('running, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.lease WHERE job_id = id
      UNION ALL
      SELECT format('%s, attempt %s, tries %s%s', state, attempt, tries, ', ' || reason) FROM jobq.finished WHERE job_id = id)
     AS lines (line)
$$;

SELECT jobq.create_queue('complete', retry_base => '0') AS made;

-- a completed job leaves its result, its worker and its times
SELECT jobq.enqueue('task', '{"n": 1}', 'complete', job_key => 'k') AS job \gset
SELECT attempt FROM jobq.claim('complete', worker => 'a worker');
SELECT claimed_at AS claimed FROM jobq.lease WHERE job_id = :job \gset
SELECT jobq.complete(:job, 1, '{"r": [1, "two"]}');
SELECT queue, task, state, attempt, tries, reason, result, worker, claimed_at = :'claimed' AS claimed_at,
       ended_at BETWEEN claimed_at AND clock_timestamp() AS ended_at, enqueued_at <= claimed_at AS enqueued_at
FROM jobq.history WHERE job_id = :job;
SELECT pg_temp.stands(:job), prune_at - ended_at AS kept FROM jobq.finished WHERE job_id = :job;
SELECT payload FROM jobq.job WHERE job_id = :job;

-- case 22: a second time it is lost, and the first result stays
SELECT jobq.complete(:job, 1, '"second"');
SELECT jobq.fail(:job, 1, 'late'), jobq.snooze(:job, 1, '0'), jobq.renew(:job, 1), jobq.cancel(:job);
SELECT result, state FROM jobq.history WHERE job_id = :job;
SELECT count(*) FROM jobq.failures WHERE job_id = :job;

-- no result, JSON's null, and a large one
SELECT n, jobq.enqueue('t', to_jsonb(n), 'complete') IS NOT NULL AS enqueued FROM generate_series(1, 4) AS n;
SELECT payload, jobq.complete(job_id, attempt, CASE payload::int WHEN 2 THEN jsonb 'null' WHEN 3 THEN to_jsonb(repeat('x', 1000000)) END)
FROM jobq.claim('complete', 3);
SELECT jobq.complete(job_id => job_id, attempt => attempt, result => NULL) FROM jobq.claim('complete');
SELECT payload, result IS NULL AS none, jsonb_typeof(result) AS type, length(result #>> '{}') AS length
FROM jobq.history JOIN jobq.job USING (job_id)
WHERE queue = 'complete' AND history.task = 't'
ORDER BY payload;

-- promise 3, case 23: claimed by A, expired, failed by B, claimed by C: A's word comes too late
SELECT jobq.enqueue('t', queue => 'complete') AS job \gset
SELECT attempt FROM jobq.claim('complete', worker => 'A');
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE job_id = :job;
SELECT retried FROM jobq.sweep();
SELECT attempt FROM jobq.claim('complete', worker => 'B');
SELECT jobq.fail(:job, 2, 'B failed');
SELECT attempt FROM jobq.claim('complete', worker => 'C');
SELECT jobq.complete(:job, 1, '"A"') AS by_a, jobq.complete(:job, 2, '"B"') AS by_b;
SELECT pg_temp.stands(:job);
SELECT jobq.complete(:job, 3, '"C"') AS by_c;
SELECT worker, result, attempt FROM jobq.history WHERE job_id = :job;

-- promise 5, case 53: each attempt that did not complete has its row, with its worker, times, kind and error
SELECT attempt, kind, error, worker, failed_at >= claimed_at AS times FROM jobq.failures WHERE job_id = :job ORDER BY attempt;

-- promise 4, case 24: expired but not swept, the job is still its worker's to complete
SELECT jobq.enqueue('t', queue => 'complete') AS job \gset
SELECT attempt FROM jobq.claim('complete', lease => '1 s');
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 h' WHERE job_id = :job;
SELECT jobq.complete(:job, 1);
SELECT died, retried FROM jobq.sweep();
SELECT pg_temp.stands(:job), (SELECT count(*) FROM jobq.failures WHERE job_id = :job) AS failures;

-- the work and its completion are one transaction
CREATE TEMP TABLE effect (job_id bigint);
SELECT jobq.enqueue('t', queue => 'complete') AS job \gset
SELECT attempt FROM jobq.claim('complete');
BEGIN;
INSERT INTO effect VALUES (:job);
SELECT jobq.complete(:job, 1);
ROLLBACK;
SELECT pg_temp.stands(:job), (SELECT count(*) FROM effect) AS effects;
BEGIN;
INSERT INTO effect VALUES (:job);
SELECT jobq.complete(:job, 1);
COMMIT;
SELECT pg_temp.stands(:job), (SELECT count(*) FROM effect) AS effects;

-- nothing kept: the job, its key and its failures go as it completes
SELECT jobq.create_queue('complete unkept', retry_base => '0', keep_completed => '0') AS made;
SELECT jobq.enqueue('t', queue => 'complete unkept', job_key => 'k') AS job \gset
SELECT jobq.fail(job_id, attempt, 'error') FROM jobq.claim('complete unkept');
SELECT attempt FROM jobq.claim('complete unkept');
SELECT jobq.complete(:job, 2, '"result"');
SELECT pg_temp.stands(:job), (SELECT count(*) FROM jobq.failure WHERE job_id = :job) AS failures;
SELECT jobq.complete(:job, 2), jobq.retry(:job);
SELECT created FROM jobq.enqueue_unique('t', queue => 'complete unkept', job_key => 'k');
SELECT count(*) FROM jobq.enqueue_batch('t', '[1, 2]', 'complete unkept');
SELECT array_agg(job_id) AS ids FROM jobq.claim('complete unkept', 3) \gset
SELECT count(*) FROM jobq.complete_batch(:'ids', '{1,1,1}');
SELECT pg_temp.stands(job_id), (SELECT count(*) FROM jobq.key k WHERE k.job_id = ids.job_id) AS keys FROM unnest(:'ids'::bigint[]) AS ids (job_id);
-- the setting is looked at when the job ends
SELECT jobq.enqueue('t', queue => 'complete unkept') AS job \gset
SELECT attempt FROM jobq.claim('complete unkept');
SELECT jobq.alter_queue('complete unkept', keep_completed => '1000 years');
SELECT jobq.complete(:job, 1);
SELECT pg_temp.stands(:job), prune_at IS NULL AS for_ever FROM jobq.finished WHERE job_id = :job;

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^complete( |$)';
\o
