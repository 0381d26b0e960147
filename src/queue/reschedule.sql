-- Rescheduling.

CREATE FUNCTION jobq.reschedule(
  job_id bigint,
  run_at timestamp with time zone DEFAULT NULL,
  priority integer DEFAULT NULL
) RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_reschedule';

COMMENT ON FUNCTION jobq.reschedule IS
  'gives a waiting job another time or priority, NULL leaves one; false: it does not wait';
