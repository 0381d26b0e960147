-- When a schedule would be due.

CREATE FUNCTION jobq.next_runs(
  schedule text,
  count integer DEFAULT 5,
  timezone text DEFAULT 'UTC',
  after timestamp with time zone DEFAULT NULL
) RETURNS SETOF timestamp with time zone
LANGUAGE c ROWS 5 AS 'MODULE_PATHNAME', 'jobq_next_runs';

COMMENT ON FUNCTION jobq.next_runs IS
  'the next instants of a schedule''s text after an instant (now); intervals are counted from it';
