-- Retention: jobs that ended are kept as long as their queue says, and then go with all that belongs to them.
\set VERBOSITY terse
SET client_min_messages = warning;

-- where a job stands: its line, or its lines if there were (wrongly) more than one; and what else it has left
CREATE FUNCTION pg_temp.stands(id bigint) RETURNS text
LANGUAGE sql AS $$
SELECT coalesce(string_agg(line, ' AND '), 'nowhere')
       || CASE WHEN EXISTS (SELECT FROM jobq.job WHERE job_id = id) THEN '' ELSE ', no job' END
       || CASE WHEN EXISTS (SELECT FROM jobq.key WHERE job_id = id) THEN ', has the key' ELSE '' END
       || CASE WHEN EXISTS (SELECT FROM jobq.failure WHERE job_id = id) THEN ', failures' ELSE '' END
FROM (SELECT 'delayed' FROM jobq.delayed WHERE job_id = id
      UNION ALL
      SELECT 'ready' FROM jobq.ready WHERE job_id = id
      UNION ALL
      SELECT 'running' FROM jobq.lease WHERE job_id = id
      UNION ALL
      SELECT state FROM jobq.finished WHERE job_id = id) AS lines (line)
$$;

-- one job of each end, with a failure each: completed, cancelled, dead; and one that lives
CREATE FUNCTION pg_temp.ends(queue_name text) RETURNS TABLE (completed bigint, cancelled bigint, dead bigint, alive bigint)
LANGUAGE plpgsql AS $$
BEGIN
    completed := jobq.enqueue('completes', queue => queue_name);
    PERFORM jobq.fail(job_id, attempt, 'error', '0') FROM jobq.claim(queue_name);
    PERFORM jobq.complete(job_id, attempt, '"result"') FROM jobq.claim(queue_name);
    cancelled := jobq.enqueue('is cancelled', queue => queue_name, job_key => 'key');
    PERFORM jobq.claim(queue_name);
    PERFORM jobq.cancel(cancelled);
    dead := jobq.enqueue('dies', queue => queue_name, job_key => 'key');
    PERFORM jobq.fail(job_id, attempt, 'error', retry => false) FROM jobq.claim(queue_name);
    alive := jobq.enqueue('lives', queue => queue_name, job_key => 'key');
    PERFORM jobq.fail(job_id, attempt, 'error', '1 h') FROM jobq.claim(queue_name);
    RETURN NEXT;
END
$$;

-- sweeps until there is nothing left to prune
CREATE FUNCTION pg_temp.prunes() RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    first bigint := (SELECT count(*) FROM jobq.finished);
BEGIN
    LOOP
        before := (SELECT count(*) FROM jobq.finished);
        PERFORM jobq.sweep();
        EXIT WHEN before = (SELECT count(*) FROM jobq.finished);
    END LOOP;
    RETURN first - before;
END
$$;

SELECT pg_temp.prunes() >= 0 AS rest_of_earlier_tests;
SELECT jobq.create_queue('prune', keep_completed => '1 h', keep_dead => '2 h') AS made;
SELECT * FROM pg_temp.ends('prune') \gset
SELECT task, prune_at - ended_at AS kept FROM jobq.finished JOIN jobq.job USING (job_id) WHERE job_id IN (:completed, :cancelled, :dead) ORDER BY task;
-- not before its time
SELECT pg_temp.prunes();
-- at its time the job goes, and its failures; the others stay
UPDATE jobq.finished SET prune_at = clock_timestamp() - interval '1 us' WHERE job_id = :completed;
SELECT pg_temp.prunes();
SELECT pg_temp.stands(:completed) AS completed, pg_temp.stands(:cancelled) AS cancelled, pg_temp.stands(:dead) AS dead, pg_temp.stands(:alive) AS alive;
SELECT count(*) FROM jobq.history WHERE job_id = :completed;
UPDATE jobq.finished SET prune_at = clock_timestamp() - interval '1 us' WHERE job_id IN (:cancelled, :dead);
-- one retried before it is pruned lives
SELECT jobq.cancel(:alive), jobq.retry(:cancelled);
SELECT pg_temp.prunes();
SELECT pg_temp.stands(:completed) AS completed, pg_temp.stands(:cancelled) AS cancelled, pg_temp.stands(:dead) AS dead, pg_temp.stands(:alive) AS alive;
-- what was pruned cannot be retried
SELECT jobq.retry(:dead), jobq.cancel(:dead), jobq.retry_dead('prune');
-- a live job's age is no reason
UPDATE jobq.job SET enqueued_at = '2000-01-01' WHERE job_id = :cancelled;
SELECT pg_temp.prunes();
SELECT pg_temp.stands(:cancelled);

-- case 93: many at once, in batches, all of them within a few sweeps
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 2500) AS n), 'prune', 0);
SELECT count(jobq.fail(job_id, attempt, 'error', '0')) FROM jobq.claim('prune', 2500);
CREATE TEMP TABLE many AS SELECT job_id, attempt FROM jobq.claim('prune', 2500);
SELECT count(*) FROM many, jobq.complete(job_id, attempt) AS done WHERE done;
UPDATE jobq.finished SET prune_at = clock_timestamp() - interval '1 us' WHERE job_id IN (SELECT job_id FROM many);
CREATE TEMP TABLE left_over (turn int, rest bigint);
DO $$
BEGIN
    FOR turn IN 1 .. 4 LOOP
        PERFORM jobq.sweep();
        INSERT INTO left_over SELECT turn, count(*) FROM jobq.finished WHERE job_id IN (SELECT job_id FROM many);
    END LOOP;
END
$$;
SELECT max(rest) < 2500 AS begins, min(rest) AS ends_with FROM left_over;
SELECT (SELECT count(*) FROM jobq.job JOIN many USING (job_id)) AS jobs, (SELECT count(*) FROM jobq.failure JOIN many USING (job_id)) AS failures;

-- 1000 years or more are for ever; less is a time; months and years may be named here
SELECT jobq.create_queue('prune ages') AS made;
CREATE TEMP TABLE ages (turn serial, keep interval);
INSERT INTO ages (keep) VALUES ('1000 years'), ('365000 days'), ('365001 days'), ('8760000 h'), ('178000000 years'), ('2147483647 days'),
    ('364999 days'), ('364999 days 23:59:59.999999'), ('999 years 11 months'), ('1 year'), ('1 month'), ('1 month 1 day 1 h'), ('1 us');
CREATE FUNCTION pg_temp.keeps(keep interval) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    ended record;
    f jobq.finished;
    g jobq.finished;
BEGIN
    PERFORM jobq.alter_queue('prune ages', keep_completed => keep, keep_dead => keep);
    SELECT * INTO ended FROM pg_temp.ends('prune ages');
    SELECT * INTO f FROM jobq.finished WHERE job_id = ended.completed;
    SELECT * INTO g FROM jobq.finished WHERE job_id = ended.dead;
    PERFORM jobq.cancel_key('prune ages', 'key');
    IF (f.prune_at - f.ended_at) IS DISTINCT FROM (g.prune_at - g.ended_at) THEN
        RETURN format('completed %s, dead %s', f.prune_at - f.ended_at, g.prune_at - g.ended_at);
    END IF;
    RETURN coalesce((f.prune_at - f.ended_at)::text, 'for ever');
END
$$;
SELECT keep, pg_temp.keeps(keep) FROM ages ORDER BY turn;
SELECT keep_completed, keep_dead FROM jobq.queues WHERE queue = 'prune ages';
-- kept for ever, it is never pruned
SELECT jobq.alter_queue('prune ages', keep_completed => '1000 years');
SELECT jobq.enqueue('t', queue => 'prune ages', priority => 0) AS job \gset
SELECT jobq.complete(job_id, attempt) FROM jobq.claim('prune ages');
SELECT pg_temp.prunes() >= 0 AS pruned;
SELECT pg_temp.stands(:job);
SELECT keep_completed, keep_dead FROM jobq.queues WHERE queue = 'prune ages';
-- the setting of the moment when the job ends is its own for good
SELECT jobq.alter_queue('prune ages', keep_completed => '1 us');
SELECT pg_temp.prunes() >= 0 AS pruned;
SELECT pg_temp.stands(:job);

-- nothing kept of the dead either: they go as they die
SELECT jobq.create_queue('prune nothing', keep_completed => '0', keep_dead => '0') AS made;
SELECT * FROM pg_temp.ends('prune nothing') \gset
SELECT pg_temp.prunes() >= 0 AS pruned;
SELECT pg_temp.stands(:completed) AS completed, pg_temp.stands(:cancelled) AS cancelled, pg_temp.stands(:dead) AS dead, pg_temp.stands(:alive) AS alive;

-- promise 6: rows without their job (a restore under way) are left, and stop nobody
SELECT jobq.enqueue('t', queue => 'prune', priority => 0) AS job \gset
SELECT jobq.complete(job_id, attempt) FROM jobq.claim('prune');
INSERT INTO jobq.finished SELECT (f).* FROM (SELECT jsonb_populate_record(finished, jsonb_build_object('job_id', -n)) AS f
    FROM jobq.finished, generate_series(1, 1500) AS n WHERE job_id = :job) AS finished;
UPDATE jobq.finished SET prune_at = '2020-01-01' WHERE job_id < 0;
UPDATE jobq.finished SET prune_at = clock_timestamp() - interval '1 us' WHERE job_id = :job;
SELECT count(*) FROM generate_series(1, 5) AS n, LATERAL jobq.sweep(1000 + 0 * n);
SELECT pg_temp.stands(:job), (SELECT count(*) FROM jobq.finished WHERE job_id < 0) AS without_job;
DELETE FROM jobq.finished WHERE job_id < 0;

-- promise 1: nothing is left without its job, and no job without its line
SELECT (SELECT count(*) FROM jobq.failure f WHERE NOT EXISTS (SELECT FROM jobq.job j WHERE j.job_id = f.job_id)) AS failures,
       (SELECT count(*) FROM jobq.key k WHERE NOT EXISTS (SELECT FROM jobq.job j WHERE j.job_id = k.job_id)) AS keys,
       (SELECT count(*) FROM jobq.finished f WHERE NOT EXISTS (SELECT FROM jobq.job j WHERE j.job_id = f.job_id)) AS finished,
       (SELECT count(*) FROM jobq.job WHERE pg_temp.stands(job_id) ~ 'nowhere| AND ') AS jobs;

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^prune( |$)';
\o
