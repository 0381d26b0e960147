-- Renewals.

CREATE FUNCTION jobq.renew(job_id bigint, attempt integer, lease interval DEFAULT NULL)
RETURNS timestamp with time zone
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_renew';

COMMENT ON FUNCTION jobq.renew IS
  'extends a lease from now and returns its end; NULL: the lease is lost, stop working';

CREATE FUNCTION jobq.renew_batch(job_ids bigint[], attempts integer[], lease interval DEFAULT NULL)
RETURNS TABLE (job_id bigint, lease_expires_at timestamp with time zone)
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_renew_batch';

COMMENT ON FUNCTION jobq.renew_batch IS
  'renew for many; leases that are lost have no row in the result';
