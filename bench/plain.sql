-- The opponent: the queue that a good engineer writes without an extension, and as fast as we could make it.
-- One table; ready rows have an index of their own in claim order; a claim counts the attempt and takes a lease; the end of
-- a job is a DELETE, or an UPDATE in the variant that keeps its rows (keep, keep_batch). A statement below "-- name:" is run
-- by bench/queue as a prepared one, :words are its parameters; {n} is written as a constant, because a parameter in LIMIT is
-- planned anew at each call. Half of a page stays free for the row that the claim writes, which then needs a third less WAL.
--
-- What it does not do: fence by attempt (a late worker ends the job of the next one), keep errors or a history of failures,
-- back off, tell a crash from a failure, keep keys unique, pause, have settings by queue, hand out a batch in its order,
-- check its arguments, give producers and workers rights of their own, stay fast while an old snapshot pins dead rows.

CREATE SCHEMA plain;

CREATE TYPE plain.job_state AS ENUM ('delayed', 'ready', 'running', 'done', 'dead');

CREATE TABLE plain.job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    run_at timestamptz,
    lease_until timestamptz,
    ended_at timestamptz,
    state plain.job_state NOT NULL DEFAULT 'ready',
    priority int NOT NULL DEFAULT 5,
    attempts int NOT NULL DEFAULT 0,
    max_attempts int NOT NULL DEFAULT 10,
    queue text COLLATE "C" NOT NULL,
    task text NOT NULL,
    worker text,
    payload jsonb NOT NULL
) WITH (
    fillfactor = 50,
    vacuum_truncate = off,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 10000
);
CREATE INDEX job_ready ON plain.job (queue, priority, id) WHERE state = 'ready';
CREATE INDEX job_lease ON plain.job (lease_until) WHERE state = 'running';
CREATE INDEX job_run_at ON plain.job (run_at) WHERE state = 'delayed';
CREATE INDEX job_ended ON plain.job (ended_at) WHERE ended_at IS NOT NULL;

-- name: enqueue
INSERT INTO plain.job (queue, task, payload)
VALUES (:queue, :task, :payload)
RETURNING id

-- name: enqueue_batch
INSERT INTO plain.job (queue, task, payload)
SELECT :queue, :task, value
FROM jsonb_array_elements(:payloads)
RETURNING id

-- name: claim
WITH picked AS MATERIALIZED (
    SELECT id
    FROM plain.job
    WHERE queue = :queue AND state = 'ready'
    ORDER BY priority, id
    FOR UPDATE SKIP LOCKED
    LIMIT 1
)
UPDATE plain.job
SET state = 'running', attempts = attempts + 1, worker = :worker, lease_until = clock_timestamp() + interval '60 s'
WHERE id = (SELECT id FROM picked)
RETURNING id AS job_id, attempts AS attempt, task, payload

-- name: claim_batch
WITH picked AS MATERIALIZED (
    SELECT ctid
    FROM plain.job
    WHERE queue = :queue AND state = 'ready'
    ORDER BY priority, id
    FOR UPDATE SKIP LOCKED
    LIMIT {n}
), claimed AS (
    UPDATE plain.job
    SET state = 'running', attempts = attempts + 1, worker = :worker, lease_until = clock_timestamp() + interval '60 s'
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM picked))
    RETURNING id, attempts, task, payload
)
SELECT array_agg(id) AS job_ids, array_agg(attempts) AS attempts, string_agg(task || payload::text, E'\n') AS work
FROM claimed

-- name: complete
DELETE FROM plain.job
WHERE id = :job_id

-- name: complete_batch
DELETE FROM plain.job
WHERE id = ANY (:job_ids)

-- name: keep
UPDATE plain.job
SET state = 'done', ended_at = clock_timestamp(), lease_until = NULL
WHERE id = :job_id

-- name: keep_batch
UPDATE plain.job
SET state = 'done', ended_at = clock_timestamp(), lease_until = NULL
WHERE id = ANY (:job_ids)

-- name: sweep
UPDATE plain.job
SET state = CASE WHEN attempts >= max_attempts THEN 'dead' ELSE 'ready' END::plain.job_state,
    ended_at = CASE WHEN attempts >= max_attempts THEN clock_timestamp() END,
    lease_until = NULL
WHERE state = 'running' AND lease_until < clock_timestamp()

-- name: prune
DELETE FROM plain.job
WHERE ended_at < clock_timestamp() - interval '1 day'
