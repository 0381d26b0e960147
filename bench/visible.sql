-- The other opponent of bench/flat: a queue whose claim has the shape that pgmq documents, written anew for this measurement.
-- A message has no state. It is claimed by moving the instant from which it is visible into the future and counting the read,
-- so the claim looks for visible messages in the order of their ids; the end is a DELETE. A table is a queue, without priorities.
-- Statements as in plain.sql.
--
-- Unlike there, a claim is no call of a PL/pgSQL function that puts its text together each time: that would be slower. The
-- tables' vacuum settings are those of plain.sql, which are better for a queue than the server's defaults.

CREATE SCHEMA visible;

CREATE TABLE visible.message (
    msg_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    read_ct int NOT NULL DEFAULT 0,
    enqueued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    vt timestamptz NOT NULL DEFAULT clock_timestamp(),
    task text NOT NULL,
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
CREATE INDEX message_vt ON visible.message (vt);

-- name: enqueue
INSERT INTO visible.message (task, payload)
VALUES (:task, :payload)
RETURNING msg_id

-- name: enqueue_batch
INSERT INTO visible.message (task, payload)
SELECT :task, value
FROM jsonb_array_elements(:payloads)
RETURNING msg_id

-- name: claim
WITH picked AS MATERIALIZED (
    SELECT msg_id
    FROM visible.message
    WHERE vt <= clock_timestamp()
    ORDER BY msg_id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE visible.message AS m
SET vt = clock_timestamp() + interval '60 s', read_ct = read_ct + 1
FROM picked
WHERE m.msg_id = picked.msg_id
RETURNING m.msg_id AS job_id, m.read_ct AS attempt, m.task, m.payload

-- name: claim_batch
WITH picked AS MATERIALIZED (
    SELECT msg_id
    FROM visible.message
    WHERE vt <= clock_timestamp()
    ORDER BY msg_id
    LIMIT {n}
    FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE visible.message AS m
    SET vt = clock_timestamp() + interval '60 s', read_ct = read_ct + 1
    FROM picked
    WHERE m.msg_id = picked.msg_id
    RETURNING m.msg_id, m.read_ct, m.task, m.payload
)
SELECT array_agg(msg_id) AS job_ids, array_agg(read_ct) AS attempts, string_agg(task || payload::text, E'\n') AS work
FROM claimed

-- name: complete
DELETE FROM visible.message
WHERE msg_id = :job_id

-- name: complete_batch
DELETE FROM visible.message
WHERE msg_id = ANY (:job_ids)
