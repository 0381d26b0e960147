-- The same work in jobq's calls, under the same names as in plain.sql.

-- name: enqueue
SELECT jobq.enqueue(:task, :payload, :queue)

-- name: enqueue_batch
SELECT *
FROM jobq.enqueue_batch(:task, :payloads, :queue)

-- name: claim
SELECT job_id, attempt, task, payload
FROM jobq.claim(:queue, 1, :worker)

-- name: claim_batch
SELECT array_agg(job_id) AS job_ids, array_agg(attempt) AS attempts, string_agg(task || payload::text, E'\n') AS work
FROM jobq.claim(:queue, {n}, :worker)

-- name: complete
SELECT jobq.complete(:job_id, :attempt)

-- name: complete_batch
SELECT *
FROM jobq.complete_batch(:job_ids, :attempts)

-- name: complete_and_claim
SELECT job_id, attempt, task, payload
FROM jobq.complete_and_claim(ARRAY[:job_id]::bigint[], ARRAY[:attempt]::int[], :queue, 1, :worker)
