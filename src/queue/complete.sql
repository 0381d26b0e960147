-- Completions.

CREATE FUNCTION jobq.complete(job_id bigint, attempt integer, result jsonb DEFAULT NULL)
RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_complete';

COMMENT ON FUNCTION jobq.complete IS
  'ends a job as completed; false: the lease is lost, nothing changed';

CREATE FUNCTION jobq.complete_batch(
  job_ids bigint[],
  attempts integer[],
  results jsonb DEFAULT NULL
) RETURNS SETOF bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_complete_batch';

COMMENT ON FUNCTION jobq.complete_batch IS
  'complete for many, results being one JSON array; returns the ids of those that were still held';

CREATE FUNCTION jobq.complete_and_claim(
  job_ids bigint[],
  attempts integer[],
  queue text DEFAULT 'default',
  max_jobs integer DEFAULT 1,
  worker text DEFAULT NULL,
  lease interval DEFAULT NULL,
  results jsonb DEFAULT NULL
) RETURNS SETOF jobq.claimed_job
LANGUAGE c ROWS 10 AS 'MODULE_PATHNAME', 'jobq_complete_and_claim';

COMMENT ON FUNCTION jobq.complete_and_claim IS
  'complete_batch and claim in one commit; attempts that are lost are ignored';
