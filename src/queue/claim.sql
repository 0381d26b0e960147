-- Claims.

CREATE TYPE jobq.claimed_job AS (
  job_id bigint,
  attempt integer,
  task text,
  payload jsonb,
  queue text,
  group_key text,
  headers jsonb,
  tries integer,
  max_attempts integer,
  crashes integer,
  priority integer,
  last_error text,
  enqueued_at timestamp with time zone,
  lease_expires_at timestamp with time zone
);

COMMENT ON TYPE jobq.claimed_job IS
  'a job in a worker''s hands; (job_id, attempt) is the token that renew, complete, fail and snooze ask for';

CREATE FUNCTION jobq.claim(
  queue text DEFAULT 'default',
  max_jobs integer DEFAULT 1,
  worker text DEFAULT NULL,
  lease interval DEFAULT NULL
) RETURNS SETOF jobq.claimed_job
LANGUAGE c ROWS 10 AS 'MODULE_PATHNAME', 'jobq_claim';

COMMENT ON FUNCTION jobq.claim IS
  'hands out up to max_jobs ready jobs under a lease, in (priority, tag, job_id) order; its commit counts the attempt';

CREATE FUNCTION jobq.claim_from(
  queues text[],
  max_jobs integer DEFAULT 1,
  worker text DEFAULT NULL,
  lease interval DEFAULT NULL
) RETURNS SETOF jobq.claimed_job
LANGUAGE c ROWS 10 AS 'MODULE_PATHNAME', 'jobq_claim_from';

COMMENT ON FUNCTION jobq.claim_from IS 'claim from several queues, in the order given';
