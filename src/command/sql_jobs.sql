-- View: SQL jobs and what became of them. A role sees its own, an administrator all.

-- What a caller's own function may see is what the role may.
CREATE VIEW jobq.sql_jobs WITH (security_barrier) AS
SELECT
  c.job_id,
  coalesce(o.rolname::text, c.role_name) AS run_as,
  c.command,
  make_interval(secs => c.timeout / 1e6::double precision) AS timeout,
  coalesce(l.state, f.state, 'gone') AS state,
  l.run_at,
  coalesce(l.attempt, f.attempt) AS attempt,
  coalesce(l.tries, f.tries) AS tries,
  coalesce(j.max_attempts, q.max_attempts) AS max_attempts,
  coalesce(r.claimed_at, f.claimed_at) AS claimed_at,
  f.ended_at, f.reason, f.result,
  (
    SELECT e.error
    FROM jobq.failure AS e
    WHERE e.job_id = c.job_id
    ORDER BY e.attempt DESC
    LIMIT 1
  ) AS last_error,
  j.enqueued_at
FROM jobq.sql_command AS c
JOIN jobq.job AS j ON j.job_id = c.job_id
JOIN jobq.queue AS q ON q.queue_id = j.queue_id
LEFT JOIN pg_roles AS o ON o.oid = c.role_oid
LEFT JOIN jobq.jobs AS l ON l.job_id = c.job_id
LEFT JOIN jobq.lease AS r ON r.job_id = c.job_id
LEFT JOIN jobq.finished AS f ON f.job_id = c.job_id
WHERE pg_has_role(current_user, c.role_oid, 'USAGE')
  OR EXISTS (
    SELECT
    FROM pg_roles AS a
    WHERE a.rolname = 'jobq_admin' AND pg_has_role(current_user, a.oid, 'USAGE')
  );

COMMENT ON VIEW jobq.sql_jobs IS
  'SQL jobs of the roles whose rights the caller has: the command, where it stands, its result or last error';
