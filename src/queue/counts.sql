-- Counts.

CREATE FUNCTION jobq.queue_counts(queue text DEFAULT NULL, exact boolean DEFAULT false)
RETURNS TABLE (
  queue text,
  delayed bigint,
  ready bigint,
  running bigint,
  completed bigint,
  cancelled bigint,
  dead bigint
)
LANGUAGE c ROWS 10 AS 'MODULE_PATHNAME', 'jobq_queue_counts';

COMMENT ON FUNCTION jobq.queue_counts IS
  'jobs by queue and state; unless exact, large tables are estimated by a sample of their pages';
