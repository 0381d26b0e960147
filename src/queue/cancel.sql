-- Cancellations.

CREATE FUNCTION jobq.cancel(job_id bigint, reason text DEFAULT NULL) RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_cancel';

COMMENT ON FUNCTION jobq.cancel IS
  'ends a live job as cancelled; a running one loses its lease, which its worker''s next renew says; false: it is not live';

CREATE FUNCTION jobq.cancel_key(queue text, job_key text, reason text DEFAULT NULL)
RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_cancel_key';

COMMENT ON FUNCTION jobq.cancel_key IS 'cancel for the live job that holds the key';
