-- Producers.

CREATE FUNCTION jobq.enqueue(
  task text,
  payload jsonb DEFAULT '{}',
  queue text DEFAULT 'default',
  priority integer DEFAULT 5,
  run_at timestamp with time zone DEFAULT NULL,
  delay interval DEFAULT NULL,
  max_attempts integer DEFAULT NULL,
  max_crashes integer DEFAULT NULL,
  group_key text DEFAULT NULL,
  job_key text DEFAULT NULL,
  job_key_mode text DEFAULT 'keep',
  headers jsonb DEFAULT NULL
) RETURNS bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_enqueue';

COMMENT ON FUNCTION jobq.enqueue IS
  'makes a job in this transaction and returns its id; with job_key at most one live one a queue';

CREATE FUNCTION jobq.enqueue_unique(
  task text,
  payload jsonb DEFAULT '{}',
  queue text DEFAULT 'default',
  priority integer DEFAULT 5,
  run_at timestamp with time zone DEFAULT NULL,
  delay interval DEFAULT NULL,
  max_attempts integer DEFAULT NULL,
  max_crashes integer DEFAULT NULL,
  group_key text DEFAULT NULL,
  job_key text DEFAULT NULL,
  job_key_mode text DEFAULT 'keep',
  headers jsonb DEFAULT NULL
) RETURNS TABLE (job_id bigint, created boolean)
LANGUAGE c ROWS 1 AS 'MODULE_PATHNAME', 'jobq_enqueue_unique';

COMMENT ON FUNCTION jobq.enqueue_unique IS
  'enqueue that also says whether it made a job or found one with the key';

CREATE FUNCTION jobq.enqueue_batch(
  task text,
  payloads jsonb,
  queue text DEFAULT 'default',
  priority integer DEFAULT 5,
  run_at timestamp with time zone DEFAULT NULL,
  delay interval DEFAULT NULL,
  max_attempts integer DEFAULT NULL,
  max_crashes integer DEFAULT NULL,
  group_key text DEFAULT NULL,
  headers jsonb DEFAULT NULL
) RETURNS SETOF bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_enqueue_batch';

COMMENT ON FUNCTION jobq.enqueue_batch IS
  'makes a job for each element of a JSON array and returns their ids in its order';
