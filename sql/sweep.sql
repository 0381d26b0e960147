-- Sweep: due jobs become ready, the jobs of dead workers come back, and those that kill their workers are buried.
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

-- where a job stands: its line, or its lines if there were (wrongly) more than one; and whether it has its key
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

-- lets the lease of a job, or the wait of one, end
CREATE FUNCTION pg_temp.expire(id bigint) RETURNS void
LANGUAGE sql AS $$
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE job_id = id;
UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '1 s' WHERE job_id = id;
$$;

-- what earlier tests in this database left to do
SELECT count(*) >= 0 AS done FROM generate_series(1, 5) AS n, LATERAL jobq.sweep(10000 + 0 * n);
SELECT jobq.create_queue('sweep', lease => '10 s', retry_base => '5 s', max_attempts => 10, max_crashes => 3) AS made;

-- promise 2: a job that kills its workers starts three times and is dead, though tries remain; each death is recorded
SELECT jobq.enqueue('poison', queue => 'sweep', job_key => 'k') AS job \gset
SELECT attempt, tries, crashes FROM jobq.claim('sweep', worker => 'first victim');
SELECT * FROM jobq.sweep();
SELECT pg_temp.stands(:job);
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
-- it waits for its back-off, as after a failure
SELECT pg_temp.stands(:job), run_at - failed_at BETWEEN '5 s' AND '5.5 s' AS back_off
FROM jobq.delayed JOIN jobq.failure USING (job_id) WHERE job_id = :job;
-- promise 4: an expiry is counted once
SELECT * FROM jobq.sweep();
SELECT pg_temp.stands(:job);
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT attempt, tries, crashes, last_error FROM jobq.claim('sweep', worker => 'second victim');
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT attempt, tries, crashes FROM jobq.claim('sweep', worker => 'third victim');
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT pg_temp.stands(:job);
SELECT state, reason, attempt, tries, worker, ended_at >= claimed_at AS times FROM jobq.history WHERE job_id = :job;
-- promise 5, case 168: each attempt has its row, with a worker and real times
SELECT attempt, kind, error, worker, claimed_at BETWEEN enqueued_at AND failed_at AS claimed_at, failed_at <= clock_timestamp() AS failed_at
FROM jobq.failures JOIN jobq.job USING (job_id) WHERE job_id = :job ORDER BY attempt;
SELECT * FROM jobq.sweep();
SELECT count(*) FROM jobq.claim('sweep');
-- case 64: its key is free
SELECT created FROM jobq.enqueue_unique('t', queue => 'sweep', job_key => 'k');
SELECT jobq.purge_queue('sweep');

-- crashes are counted in a row: an orderly end of an attempt starts the count again
SELECT jobq.alter_queue('sweep', retry_base => '0');
SELECT jobq.enqueue('t', queue => 'sweep') AS job \gset
SELECT attempt FROM jobq.claim('sweep');
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT attempt, crashes FROM jobq.claim('sweep');
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT attempt, crashes FROM jobq.claim('sweep');
SELECT jobq.fail(:job, 3, 'an orderly end');
SELECT attempt, crashes FROM jobq.claim('sweep');
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT pg_temp.stands(:job);
SELECT jobq.cancel(:job);

-- the last try may end by expiry: dead with its reason, and all that it held is free (case 49)
SELECT jobq.enqueue('t', queue => 'sweep', max_attempts => 1, job_key => 'k') AS job \gset
SELECT attempt FROM jobq.claim('sweep');
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT pg_temp.stands(:job);
-- limits of its own, and the queue's at the time of the sweep
SELECT jobq.enqueue('t', queue => 'sweep', max_crashes => 1) AS job \gset
SELECT attempt FROM jobq.claim('sweep');
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT pg_temp.stands(:job);
SELECT jobq.enqueue('t', queue => 'sweep') AS job \gset
SELECT attempt FROM jobq.claim('sweep');
SELECT jobq.alter_queue('sweep', max_crashes => 1);
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT pg_temp.stands(:job);
SELECT jobq.alter_queue('sweep', max_crashes => 3);

-- a worker whose lease was swept has lost it, whatever its name (case 24, 48)
SELECT jobq.enqueue('t', queue => 'sweep') AS job \gset
SELECT attempt FROM jobq.claim('sweep', worker => 'w');
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT jobq.renew(:job, 1), jobq.complete(:job, 1), jobq.fail(:job, 1, 'late'), jobq.snooze(:job, 1, '0');
SELECT attempt FROM jobq.claim('sweep', worker => 'w');
SELECT jobq.renew(:job, 1), jobq.complete(:job, 1), jobq.fail(:job, 1, 'late'), jobq.snooze(:job, 1, '0');
SELECT pg_temp.stands(:job);
SELECT jobq.complete(:job, 2);

-- case 52: what comes back with a back-off is not fetched before
SELECT jobq.alter_queue('sweep', retry_base => '1 h');
SELECT jobq.enqueue('t', queue => 'sweep') AS job \gset
SELECT attempt FROM jobq.claim('sweep');
SELECT pg_temp.expire(:job);
SELECT * FROM jobq.sweep();
SELECT count(*) FROM jobq.claim('sweep', 10);
SELECT jobq.purge_queue('sweep');
SELECT jobq.alter_queue('sweep', retry_base => '0');

-- promotion: what is due, in the order of its time and its id, behind what was ready before it
SELECT jobq.enqueue('t', '"was ready"', 'sweep') IS NOT NULL AS enqueued;
SELECT count(jobq.enqueue('t', to_jsonb(n), 'sweep', delay => '1 h')) FROM generate_series(1, 9) AS n;
UPDATE jobq.delayed SET run_at = clock_timestamp() - CASE WHEN payload::int <= 3 THEN interval '1 min' ELSE make_interval(mins => payload::int) END
FROM jobq.job j WHERE j.job_id = delayed.job_id AND payload IN ('1', '2', '3', '5', '6', '7', '9') AND delayed.queue_id IN (SELECT queue_id FROM jobq.queue WHERE name = 'sweep');
SELECT promoted, retried, died FROM jobq.sweep();
SELECT array_agg(payload ORDER BY turn) AS in_turn
FROM jobq.claim('sweep', 100)
     WITH ORDINALITY AS c (job_id, attempt, task, payload, queue, group_key, headers, tries, max_attempts, crashes, priority,
                           last_error, enqueued_at, lease_expires_at, turn);
-- and what is not due stays
SELECT count(*) FROM jobq.delayed JOIN jobq.queue USING (queue_id) WHERE name = 'sweep';
-- counters and groups come along, and the priority as it is at promotion
SELECT jobq.enqueue('t', queue => 'sweep', priority => 7, group_key => 'group', delay => '1 h') AS job \gset
UPDATE jobq.delayed SET attempt = 5, tries = 4, crashes = 2 WHERE job_id = :job;
SELECT pg_temp.expire(:job);
SELECT promoted FROM jobq.sweep();
SELECT pg_temp.stands(:job), priority, group_key FROM jobq.ready WHERE job_id = :job;
SELECT jobq.drop_queue('sweep', true);
-- those of one step keep their order, a thousand of them
SELECT jobq.create_queue('sweep', retry_base => '0') AS made;
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 1000) AS n), 'sweep', delay => '1 h');
UPDATE jobq.delayed SET run_at = '2020-01-01' WHERE queue_id = (SELECT queue_id FROM jobq.queue WHERE name = 'sweep');
SELECT promoted FROM jobq.sweep();
SELECT count(*), bool_and(payload::int = turn) AS in_order
FROM jobq.claim('sweep', 1000)
     WITH ORDINALITY AS c (job_id, attempt, task, payload, queue, group_key, headers, tries, max_attempts, crashes, priority,
                           last_error, enqueued_at, lease_expires_at, turn);

-- a sweep does as much as it is asked, of each kind, and by and by all of it
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE queue_id = (SELECT queue_id FROM jobq.queue WHERE name = 'sweep');
SELECT retried FROM jobq.sweep(1);
SELECT retried FROM jobq.sweep(max_jobs => 100);
SELECT retried FROM jobq.sweep(NULL);
SELECT retried FROM jobq.sweep(10000);
SELECT ready, running FROM jobq.queue_counts('sweep', true);
SELECT count(*), min(attempt), max(attempt), min(crashes), max(crashes) FROM jobq.ready JOIN jobq.queue USING (queue_id) WHERE name = 'sweep';
SELECT jobq.purge_queue('sweep');
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 2500) AS n), 'sweep', delay => '1 h');
UPDATE jobq.delayed SET run_at = '2020-01-01' WHERE queue_id = (SELECT queue_id FROM jobq.queue WHERE name = 'sweep');
SELECT promoted FROM jobq.sweep(300);
SELECT promoted FROM jobq.sweep();
SELECT promoted FROM jobq.sweep(10000);
SELECT jobq.purge_queue('sweep');

-- paused or not: due jobs are promoted and the dead workers' come back
SELECT count(*) FROM jobq.enqueue_batch('t', '[1]', 'sweep');
SELECT job_id AS running FROM jobq.claim('sweep') \gset
SELECT jobq.enqueue('t', queue => 'sweep', delay => '1 h') AS delayed \gset
SELECT jobq.pause_queue('sweep');
SELECT pg_temp.expire(:running), pg_temp.expire(:delayed);
SELECT * FROM jobq.sweep();
SELECT jobq.resume_queue('sweep');
SELECT jobq.purge_queue('sweep');

-- promise 6: rows of jobs that are not there yet (a restore under way) are left, and stop nobody
SELECT count(*) FROM jobq.enqueue_batch('t', '[1, 2]', 'sweep');
SELECT array_agg(job_id) AS ids FROM jobq.claim('sweep', 2) \gset
SELECT jobq.enqueue('t', queue => 'sweep', delay => '1 h') AS delayed \gset
INSERT INTO jobq.lease SELECT (l).* FROM (SELECT jsonb_populate_record(lease, jsonb_build_object('job_id', -job_id)) AS l FROM jobq.lease WHERE job_id = ANY (:'ids'::bigint[])) AS leases;
INSERT INTO jobq.delayed SELECT (d).* FROM (SELECT jsonb_populate_record(delayed, jsonb_build_object('job_id', -job_id)) AS d FROM jobq.delayed WHERE job_id = :delayed) AS waits;
UPDATE jobq.lease SET expires_at = '2020-01-01' WHERE job_id < 0;
UPDATE jobq.delayed SET run_at = '2020-01-01' WHERE job_id < 0;
SELECT pg_temp.expire(job_id) FROM unnest(:'ids'::bigint[] || :delayed::bigint) AS expired (job_id);
-- even if there is room for no more than the bad rows
SELECT sum(promoted) AS promoted, sum(retried) AS retried FROM generate_series(1, 5) AS n, LATERAL jobq.sweep(1 + 0 * n);
SELECT promoted, retried FROM jobq.sweep();
SELECT pg_temp.stands(job_id) FROM unnest(:'ids'::bigint[] || :delayed::bigint) AS settled (job_id);
SELECT (SELECT count(*) FROM jobq.lease WHERE job_id < 0) AS leases, (SELECT count(*) FROM jobq.delayed WHERE job_id < 0) AS waits;
DELETE FROM jobq.lease WHERE job_id < 0;
DELETE FROM jobq.delayed WHERE job_id < 0;
SELECT jobq.purge_queue('sweep');

-- promise 6: counters at their end, failures that are there already and rows of a queue that is gone stop nobody
SELECT count(*) FROM jobq.enqueue_batch('t', '["tries", "crashes", "attempt", "failure", "queue", "innocent"]', 'sweep');
CREATE TEMP TABLE bad AS SELECT job_id, payload #>> '{}' AS what FROM jobq.claim('sweep', 10);
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s',
                      tries = CASE what WHEN 'tries' THEN 2147483647 ELSE tries END,
                      crashes = CASE what WHEN 'crashes' THEN 2147483647 ELSE crashes END,
                      attempt = CASE what WHEN 'attempt' THEN 2147483647 ELSE attempt END,
                      queue_id = CASE what WHEN 'queue' THEN -1 ELSE queue_id END
FROM bad WHERE bad.job_id = lease.job_id;
INSERT INTO jobq.failure SELECT f.* FROM bad, jsonb_populate_record(NULL::jobq.failure, jsonb_build_object('job_id', job_id, 'attempt', 1,
    'kind', 'error', 'error', 'was there', 'worker', 'w', 'claimed_at', now(), 'failed_at', now())) AS f WHERE what = 'failure';
SELECT sum(retried) AS retried, sum(died) AS died FROM generate_series(1, 3) AS n, LATERAL jobq.sweep(1000 + 0 * n);
SELECT what, CASE what WHEN 'crashes' THEN regexp_replace(pg_temp.stands(job_id), '-\d+', 'below none') ELSE pg_temp.stands(job_id) END AS stands
FROM bad ORDER BY what;
SELECT count(*) FROM jobq.failures JOIN bad USING (job_id) WHERE what = 'failure';
DELETE FROM jobq.lease WHERE queue_id = -1;
DELETE FROM jobq.job WHERE job_id = (SELECT job_id FROM bad WHERE what = 'queue');
SELECT jobq.purge_queue('sweep') > 0 AS purged;

-- case 51: instants that no clock shows, set by hand: the past is due, the end of time is not, and nothing fails
SELECT count(*) FROM jobq.enqueue_batch('t', '[1, 2]', 'sweep');
SELECT array_agg(job_id) AS ids FROM jobq.claim('sweep', 2) \gset
UPDATE jobq.lease SET expires_at = CASE job_id WHEN (:'ids'::bigint[])[1] THEN timestamptz '-infinity' ELSE 'infinity' END WHERE job_id = ANY (:'ids'::bigint[]);
CREATE TEMP TABLE delays AS SELECT job_id FROM jobq.enqueue_batch('t', '[3, 4, 5]', 'sweep', delay => '1 h') AS ids (job_id);
UPDATE jobq.delayed SET run_at = CASE job_id % 3 WHEN 0 THEN timestamptz '-infinity' WHEN 1 THEN '4713-01-01 BC' ELSE 'infinity' END
WHERE job_id IN (SELECT job_id FROM delays);
SELECT * FROM jobq.sweep();
SELECT state, count(*) FROM jobq.jobs WHERE queue = 'sweep' GROUP BY 1 ORDER BY 1;
SELECT jobq.renew((:'ids'::bigint[])[2], 1) < 'infinity' AS renewed;
SELECT jobq.drop_queue('sweep', true);

-- bad values
\pset format unaligned
\pset tuples_only on
SELECT max_jobs, pg_temp.outcome(format('SELECT jobq.sweep(%s)', max_jobs))
FROM unnest(ARRAY[0, -1, -2147483648, 10000, 10001, 2147483647]) AS refused (max_jobs);
\pset format aligned
\pset tuples_only off

-- case 47: nothing runs whose lease ended a minute ago
SELECT count(*) FROM jobq.jobs WHERE state = 'running' AND lease_expires_at < clock_timestamp() - interval '1 min';

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^sweep( |$)';
\o
