-- Failures and snoozes.

CREATE FUNCTION jobq.fail(
  job_id bigint,
  attempt integer,
  error text,
  retry_in interval DEFAULT NULL,
  retry boolean DEFAULT true
) RETURNS text
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_fail';

COMMENT ON FUNCTION jobq.fail IS
  'ends an attempt as failed; returns where the job is now: delayed, ready, dead or cancelled (it was replaced); NULL: the lease is lost';

CREATE FUNCTION jobq.snooze(job_id bigint, attempt integer, delay interval) RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_snooze';

COMMENT ON FUNCTION jobq.snooze IS
  'puts a job off, or back at once with a delay of 0, at no cost of a try; false: the lease is lost';
