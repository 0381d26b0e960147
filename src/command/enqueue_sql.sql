-- SQL jobs: commands that run inside the database.

CREATE FUNCTION jobq.enqueue_sql(
  command text,
  run_at timestamp with time zone DEFAULT NULL,
  delay interval DEFAULT NULL,
  timeout interval DEFAULT '1 h',
  max_attempts integer DEFAULT 1,
  run_as text DEFAULT NULL
) RETURNS bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_enqueue_sql';

COMMENT ON FUNCTION jobq.enqueue_sql IS
  'makes a job whose command runs inside this database as the caller''s role, or for a superuser as run_as; returns its id';

CREATE FUNCTION jobq.cancel_sql(job_id bigint, reason text DEFAULT NULL) RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_cancel_sql';

COMMENT ON FUNCTION jobq.cancel_sql IS
  'cancels a SQL job of a role whose rights the caller has, and stops it if it runs; false: it is none, or not live';
