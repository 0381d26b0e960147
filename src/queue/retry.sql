-- Second lives.

CREATE FUNCTION jobq.retry(job_id bigint, run_at timestamp with time zone DEFAULT NULL)
RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_retry';

COMMENT ON FUNCTION jobq.retry IS
  'makes a dead or cancelled job live again with fresh tries and crashes; false: it is neither; 23505: a live job holds its key';

CREATE FUNCTION jobq.retry_dead(queue text, max_jobs integer DEFAULT NULL) RETURNS bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_retry_dead';

COMMENT ON FUNCTION jobq.retry_dead IS
  'retry for a queue''s dead jobs, oldest first, but those whose key a live job holds; returns how many';
