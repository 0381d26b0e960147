-- The sweep.

CREATE FUNCTION jobq.sweep(max_jobs integer DEFAULT 1000)
RETURNS TABLE (promoted bigint, retried bigint, died bigint)
LANGUAGE c ROWS 1 AS 'MODULE_PATHNAME', 'jobq_sweep';

COMMENT ON FUNCTION jobq.sweep IS
  'makes due jobs ready, takes expired leases back and prunes, up to max_jobs of each; any session may call it at any time';
