-- Lines: a long walk at random over every verb, with a model beside it and an audit after each step.
-- promise 1: each job stands in exactly one line; promise 3: attempt only grows; promise 2: a job starts as often as its attempts say;
-- promise 5: each attempt that ended without completing has its row, but the snoozed.
-- In a database of its own, for the audit reads all there is.
\set VERBOSITY terse
CREATE DATABASE jobq_lines;
\set here :DBNAME
\c jobq_lines
SET client_min_messages = warning;
CREATE EXTENSION jobq;

SELECT jobq.create_queue('lines', max_attempts => 4, max_crashes => 3, retry_base => '0', keep_completed => '1 day') AS made;
SELECT jobq.create_queue('lines elsewhere', max_attempts => 2, max_crashes => 2, retry_base => '1 h', keep_completed => '0') AS made;

-- what the walk knows of each job: how often it was handed out, failed, expired, was cancelled while it ran, was given back
CREATE TEMP TABLE known (job_id bigint PRIMARY KEY, queue text, claims int NOT NULL DEFAULT 0, failures int NOT NULL DEFAULT 0, snoozes int NOT NULL DEFAULT 0,
                         completed boolean NOT NULL DEFAULT false, removed boolean NOT NULL DEFAULT false);
CREATE TEMP TABLE held (job_id bigint, attempt int);

-- every breach of a promise that the tables show; no rows when all is well
CREATE FUNCTION pg_temp.audit() RETURNS SETOF text
LANGUAGE sql AS $$
WITH line AS MATERIALIZED (
    SELECT 'delayed' AS line, job_id, queue_id, attempt, tries, crashes, NULL::bigint AS replaced_by FROM jobq.delayed
    UNION ALL
    SELECT 'ready', job_id, queue_id, attempt, tries, crashes, NULL FROM jobq.ready
    UNION ALL
    SELECT 'running', job_id, queue_id, attempt, tries, crashes, replaced_by FROM jobq.lease
    UNION ALL
    SELECT state, job_id, queue_id, attempt, tries, 0, NULL FROM jobq.finished),
failed AS MATERIALIZED (SELECT job_id, count(*) AS failures, min(attempt) AS first, max(attempt) AS last FROM jobq.failure GROUP BY 1)
SELECT format('job %s stands in %s lines', task, coalesce(lines, 0))
FROM jobq.job FULL JOIN (SELECT job_id, count(*) AS lines FROM line GROUP BY 1) AS counts USING (job_id)
WHERE job.job_id IS NULL OR lines IS DISTINCT FROM 1
UNION ALL
SELECT format('%s row and its job are of two queues', line) FROM line JOIN jobq.job USING (job_id) WHERE job.queue_id <> line.queue_id
UNION ALL
SELECT format('ready at priority %s in group %s, job at %s in %s', r.priority, r.group_key, j.priority, j.group_key)
FROM jobq.ready r JOIN jobq.job j USING (job_id)
WHERE r.priority <> j.priority OR r.group_key IS DISTINCT FROM j.group_key
UNION ALL
SELECT format('counters of a %s job: attempt %s, tries %s, crashes %s', line, attempt, tries, crashes)
FROM line
WHERE NOT (attempt >= tries AND tries >= crashes AND crashes >= 0)
UNION ALL
SELECT format('key %s, live job of key %s', k.job_key, j.job_key)
FROM jobq.key k FULL JOIN (SELECT job_id, job_key, job.queue_id FROM jobq.job JOIN line USING (job_id)
                           WHERE job_key IS NOT NULL AND line IN ('delayed', 'ready', 'running') AND replaced_by IS NULL) AS j USING (job_id)
WHERE (k.queue_id, k.job_key) IS DISTINCT FROM (j.queue_id, j.job_key)
UNION ALL
SELECT 'failure of no job' FROM failed WHERE NOT EXISTS (SELECT FROM jobq.job WHERE job.job_id = failed.job_id)
UNION ALL
SELECT format('failures of attempts %s to %s, job at %s', first, last, attempt) FROM failed JOIN line USING (job_id) WHERE first < 1 OR last > attempt
UNION ALL
SELECT 'dead without a reason' FROM jobq.finished WHERE state = 'dead' AND reason IS NULL
UNION ALL
SELECT format('attempt %s, claimed %s times', attempt, claims) FROM known JOIN line USING (job_id) WHERE attempt <> claims
UNION ALL
SELECT format('%s job: %s claims, %s failures, %s of them on record, %s given back', line, claims, known.failures, coalesce(failed.failures, 0), snoozes)
FROM known JOIN line USING (job_id) LEFT JOIN failed USING (job_id)
WHERE known.failures <> coalesce(failed.failures, 0)
   OR claims <> known.failures + snoozes + CASE WHEN line IN ('running', 'completed') THEN 1 ELSE 0 END
UNION ALL
SELECT format('%s, %s', CASE WHEN removed THEN 'removed' ELSE 'lost' END, line)
FROM known LEFT JOIN line USING (job_id) WHERE removed <> (line IS NULL)
UNION ALL
SELECT 'handed out twice' FROM held GROUP BY job_id, attempt HAVING count(*) > 1
$$;

CREATE PROCEDURE pg_temp.walk(seed double precision, steps int)
LANGUAGE plpgsql AS $$
DECLARE
    queue_name text;
    verb int;
    job bigint;
    try int;
    word text;
    done boolean;
    breach text;
    other bigint;
    was text;
BEGIN
    PERFORM setseed(seed);
    FOR step IN 1 .. steps LOOP
        queue_name := CASE WHEN random() < 0.7 THEN 'lines' ELSE 'lines elsewhere' END;
        verb := floor(random() * 20);
        job := NULL;
        -- a token: mostly one that is held, now and then one that was
        SELECT h.job_id, h.attempt INTO job, try FROM held h ORDER BY random() LIMIT 1;
        was := (SELECT 'held' FROM jobq.lease l WHERE l.job_id = job AND l.attempt = try);
        CASE
        WHEN verb < 4 THEN
            INSERT INTO known (job_id, queue)
            SELECT e.job_id, queue_name
            FROM jobq.enqueue_unique('walk', to_jsonb(step), queue_name, floor(random() * 10)::int, delay => CASE WHEN random() < 0.2 THEN interval '1 h' END,
                                     max_attempts => CASE WHEN random() < 0.2 THEN 1 END, group_key => CASE WHEN random() < 0.3 THEN 'group' END,
                                     job_key => CASE WHEN random() < 0.7 THEN 'key ' || floor(random() * 6) END,
                                     job_key_mode => (ARRAY['keep', 'replace', 'preserve_run_at'])[1 + floor(random() * 3)::int]) AS e
            WHERE e.created;
        WHEN verb = 4 THEN
            INSERT INTO known (job_id, queue) SELECT e.job_id, queue_name FROM jobq.enqueue_batch('walk', '[1, 2, 3]', queue_name, delay => CASE WHEN random() < 0.5 THEN interval '1 h' END) AS e (job_id);
        WHEN verb < 9 THEN
            WITH c AS MATERIALIZED (SELECT * FROM jobq.claim(queue_name, 1 + floor(random() * 4)::int)),
                 h AS (INSERT INTO held SELECT job_id, attempt FROM c)
            UPDATE known SET claims = claims + 1 FROM c WHERE c.job_id = known.job_id;
        WHEN job IS NULL THEN
            NULL;
        WHEN verb = 9 THEN
            ASSERT jobq.complete(job, try) = (was IS NOT NULL);
            UPDATE known SET completed = true, removed = queue = 'lines elsewhere' WHERE job_id = job AND was IS NOT NULL;
        WHEN verb < 13 THEN
            word := jobq.fail(job, try, 'error', CASE WHEN random() < 0.5 THEN interval '0' END, random() < 0.9);
            ASSERT (word IS NULL) = (was IS NULL), word;
            UPDATE known SET failures = failures + 1 WHERE job_id = job AND was IS NOT NULL;
        WHEN verb = 13 THEN
            -- a replaced job that is given back is cancelled, and its attempt leaves a row as any cancelled one does or none: the audit asks the table
            other := (SELECT count(*) FROM jobq.failure f WHERE f.job_id = job);
            ASSERT jobq.snooze(job, try, CASE WHEN random() < 0.5 THEN interval '0' ELSE '1 h' END) = (was IS NOT NULL);
            other := (SELECT count(*) FROM jobq.failure f WHERE f.job_id = job) - other;
            UPDATE known SET snoozes = snoozes + 1 - other, failures = failures + other WHERE job_id = job AND was IS NOT NULL;
        WHEN verb = 14 THEN
            ASSERT (jobq.renew(job, try) IS NULL) = (was IS NULL);
        WHEN verb = 15 THEN
            SELECT k.job_id INTO job FROM known k ORDER BY random() LIMIT 1;
            was := (SELECT 'running' FROM jobq.lease l WHERE l.job_id = job);
            done := jobq.cancel(job, 'walk');
            UPDATE known SET failures = failures + 1 WHERE job_id = job AND was IS NOT NULL;
            ASSERT was IS NULL OR done;
        WHEN verb = 16 THEN
            SELECT k.job_id INTO job FROM known k ORDER BY random() LIMIT 1;
            BEGIN
                PERFORM jobq.retry(job, CASE WHEN random() < 0.3 THEN clock_timestamp() + interval '1 h' END);
            EXCEPTION WHEN unique_violation THEN
                NULL;
            END;
        WHEN verb = 17 THEN
            SELECT k.job_id INTO job FROM known k ORDER BY random() LIMIT 1;
            PERFORM jobq.reschedule(job, CASE WHEN random() < 0.5 THEN clock_timestamp() + interval '1 h' ELSE '2000-01-01' END, floor(random() * 10)::int);
        WHEN verb = 18 THEN
            UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE random() < 0.3;
            UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '1 s' WHERE random() < 0.3;
            CREATE TEMP TABLE expired ON COMMIT DROP AS SELECT job_id FROM jobq.lease WHERE expires_at < clock_timestamp();
            PERFORM jobq.sweep();
            UPDATE known SET failures = failures + 1 WHERE job_id IN (SELECT job_id FROM expired);
        ELSE
            IF random() < 0.2 THEN
                CREATE TEMP TABLE purged ON COMMIT DROP AS SELECT job_id FROM jobq.jobs j WHERE queue = queue_name AND state IN ('ready', 'delayed');
                PERFORM jobq.purge_queue(queue_name);
                UPDATE known SET removed = true WHERE job_id IN (SELECT job_id FROM purged);
            ELSE
                PERFORM jobq.retry_dead(queue_name, 1 + floor(random() * 3)::int);
            END IF;
        END CASE;
        COMMIT;
        SELECT a INTO breach FROM pg_temp.audit() AS a LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'seed %, step %, verb %: %', seed, step, verb, breach;
        END IF;
        COMMIT;
    END LOOP;
END
$$;
CALL pg_temp.walk(0.1, 400);
CALL pg_temp.walk(0.2, 400);
CALL pg_temp.walk(0.3, 400);
-- the walk came everywhere
SELECT count(*) > 200 AS jobs, bool_or(claims > 4) AS many_tries, bool_or(failures > 3) AS many_failures, bool_or(snoozes > 0) AS snoozed, bool_or(completed) AS completed FROM known;
SELECT state, count(*) > 0 AS came FROM jobq.history WHERE queue LIKE 'lines%' GROUP BY 1 ORDER BY 1;
SELECT kind, count(*) > 0 AS came FROM jobq.failures JOIN known USING (job_id) GROUP BY 1 ORDER BY 1;

-- the audit sees what it is there for: each breach made by hand is found, and undone
BEGIN;
INSERT INTO jobq.delayed SELECT job_id, queue_id, now(), attempt, tries, crashes FROM jobq.ready LIMIT 1;
SELECT * FROM pg_temp.audit();
ROLLBACK;
BEGIN;
DELETE FROM jobq.ready WHERE job_id = (SELECT min(job_id) FROM jobq.ready JOIN known USING (job_id) JOIN jobq.job USING (job_id) WHERE job_key IS NULL);
SELECT * FROM pg_temp.audit();
ROLLBACK;
BEGIN;
DELETE FROM jobq.failure WHERE (job_id, attempt) = (SELECT job_id, attempt FROM jobq.failure JOIN known USING (job_id) ORDER BY 1, 2 LIMIT 1);
SELECT count(*) > 0 AS found FROM pg_temp.audit();
ROLLBACK;
SELECT count(*) FROM pg_temp.audit();
\c :here
DROP DATABASE jobq_lines;
