-- Counts and views: what an operator sees.
\set VERBOSITY terse
SET client_min_messages = warning;

-- the columns that others may rely on
SELECT table_name AS view, string_agg(format('%s %s', column_name, data_type), ', ' ORDER BY ordinal_position) AS columns
FROM information_schema.columns
WHERE table_schema = 'jobq' AND table_name IN (SELECT viewname FROM pg_views WHERE schemaname = 'jobq')
GROUP BY 1 ORDER BY 1;

SELECT jobq.create_queue('counts', lease => '1 h', retry_base => '0') AS made;
SELECT jobq.create_queue('counts empty') AS made;
SELECT * FROM jobq.queue_counts('counts', true);

-- one more job of each state than of the one before
DO $$
DECLARE
    job bigint;
BEGIN
    FOR n IN 1 .. 6 LOOP
        PERFORM jobq.enqueue('completes', queue => 'counts');
        PERFORM jobq.complete(job_id, attempt, '"result"') FROM jobq.claim('counts', worker => 'worker');
    END LOOP;
    FOR n IN 1 .. 5 LOOP
        PERFORM jobq.enqueue('dies', '{"n": 1}', 'counts', headers => '{"h": 1}');
        PERFORM jobq.fail(job_id, attempt, 'first error') FROM jobq.claim('counts', worker => 'worker');
        PERFORM jobq.fail(job_id, attempt, 'last error', retry => false) FROM jobq.claim('counts', worker => 'worker');
    END LOOP;
    FOR n IN 1 .. 4 LOOP
        job := jobq.enqueue('is cancelled', queue => 'counts');
        PERFORM jobq.claim('counts', worker => 'worker');
        PERFORM jobq.cancel(job, 'called off');
    END LOOP;
    FOR n IN 1 .. 3 LOOP
        PERFORM jobq.enqueue('runs', queue => 'counts', priority => 2, group_key => 'group', job_key => 'key ' || n);
        PERFORM jobq.claim('counts', worker => CASE WHEN n < 3 THEN 'worker' ELSE 'another' END);
    END LOOP;
    PERFORM jobq.enqueue('is ready', queue => 'counts', priority => 1) FROM generate_series(1, 2);
    PERFORM jobq.enqueue('waits', queue => 'counts', run_at => '2099-01-01');
END
$$;
SELECT * FROM jobq.queue_counts('counts', true);
SELECT * FROM jobq.queue_counts(queue => 'counts empty', exact => true);
-- without a name: every queue once, the empty ones too
SELECT * FROM jobq.queue_counts(NULL, true) WHERE queue LIKE 'counts%' ORDER BY queue;
SELECT count(*) = count(DISTINCT queue) AND count(*) = (SELECT count(*) FROM jobq.queues) AS each_once FROM jobq.queue_counts(exact => true);
-- by a sample of its pages: near enough without an ANALYZE, never NULL, never negative, never an error
SELECT count(*) FROM jobq.enqueue_batch('many', (SELECT jsonb_agg(n) FROM generate_series(1, 60000) AS n), 'counts empty');
SELECT pg_relation_size('jobq.ready') > 2097152 AS sampled;
SELECT queue, least(delayed, ready, running, completed, cancelled, dead) >= 0 AS counted FROM jobq.queue_counts('counts empty');
SELECT queue, ready BETWEEN 30000 AND 120000 AS ready_near, least(delayed, running, completed, cancelled, dead) >= 0 AS others
FROM jobq.queue_counts('counts empty');
SELECT queue, exact.ready, least(estimate.delayed, estimate.ready, estimate.running, estimate.completed, estimate.cancelled, estimate.dead) >= 0 AS estimated
FROM jobq.queue_counts(NULL, false) AS estimate JOIN jobq.queue_counts(NULL, true) AS exact USING (queue)
WHERE queue LIKE 'counts%' ORDER BY queue;
SELECT count(*) = (SELECT count(*) FROM jobq.queues) AS each_once FROM jobq.queue_counts();
SELECT jobq.drop_queue('counts empty', true);

-- jobs: the live ones
SELECT task, state, attempt, tries, crashes, priority, group_key, job_key, run_at = '2099-01-01' AS run_at, worker,
       lease_expires_at > clock_timestamp() AS leased, enqueued_at <= clock_timestamp() AS enqueued
FROM jobq.jobs WHERE queue = 'counts' ORDER BY state, job_key, task;

-- history: those that ended
SELECT task, state, attempt, tries, reason, result, worker, claimed_at <= ended_at AS claimed, ended_at >= enqueued_at AS ended, count(*)
FROM jobq.history WHERE queue = 'counts' GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9 ORDER BY 2;

-- dead_jobs: history's dead, with what they were for and what they died of
SELECT to_jsonb(d) - ARRAY['job_id', 'claimed_at', 'ended_at', 'enqueued_at'] AS dead, count(*)
FROM jobq.dead_jobs d WHERE queue = 'counts' GROUP BY 1;

-- failures: each attempt that did not complete
SELECT f.attempt, f.kind, f.error, f.worker, f.claimed_at <= f.failed_at AS times, count(*)
FROM jobq.failures f JOIN jobq.history h USING (job_id)
WHERE queue = 'counts' GROUP BY 1, 2, 3, 4, 5 ORDER BY 2, 1;

-- queues: settings, and how old the oldest ready job is
SELECT to_jsonb(q) - 'oldest_ready_age' AS settings, oldest_ready_age BETWEEN '0' AND '10 min' AS age FROM jobq.queues q WHERE queue = 'counts';
UPDATE jobq.job SET enqueued_at = enqueued_at - interval '1 day' WHERE task = 'is ready';
SELECT oldest_ready_age BETWEEN '1 day' AND '1 day 10 min' AS age FROM jobq.queues WHERE queue = 'counts';
SELECT count(*) FROM jobq.claim('counts', 2);
SELECT oldest_ready_age FROM jobq.queues WHERE queue = 'counts';

-- workers: who holds how much
SELECT to_jsonb(w) - ARRAY['oldest_claim', 'next_expiry'] AS worker FROM jobq.workers w WHERE worker IN ('worker', 'another') ORDER BY worker;
SELECT worker, oldest_claim <= clock_timestamp() AS oldest_claim, next_expiry > clock_timestamp() AS next_expiry
FROM jobq.workers WHERE worker IN ('worker', 'another') ORDER BY worker;

-- promise 1: the views show each job once, live or ended
SELECT count(*) FROM jobq.job j
WHERE (SELECT count(*) FROM (SELECT job_id FROM jobq.jobs UNION ALL SELECT job_id FROM jobq.history) AS seen WHERE seen.job_id = j.job_id) <> 1;

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^counts( |$)';
\o
