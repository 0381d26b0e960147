-- Views: schedules and what became of their instants. A role sees its own, an administrator all.

-- What a caller's own function may see is what the role may.
CREATE VIEW jobq.schedules WITH (security_barrier) AS
SELECT
  s.name AS schedule, s.expression, s.timezone,
  CASE
    WHEN s.paused THEN 'paused'
    WHEN s.stopped IS NOT NULL THEN 'stopped'
    WHEN NOT EXISTS (
      SELECT
      FROM jobq.home AS h
      WHERE h.system_identifier = (SELECT c.system_identifier FROM pg_control_system() AS c)
        AND h.database_oid = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
    ) THEN 'resting'
    WHEN s.ends_at < clock_timestamp() THEN 'over'
    WHEN s.next_run_at IS NULL AND s.expression !~* '^\s*@reboot\s*$' THEN 'over'
    ELSE 'active'
  END AS state,
  s.stopped AS reason,
  s.next_run_at,
  CASE WHEN s.next_run_at < clock_timestamp() THEN clock_timestamp() - s.next_run_at END AS lag,
  r.run_at AS last_run_at,
  CASE WHEN r.state = 'enqueued' THEN coalesce(j.state, f.state, 'gone') ELSE r.state END
    AS last_outcome,
  r.job_id AS last_job_id,
  s.overlap, s.catch_up, s.starts_at, s.ends_at,
  make_interval(secs => s.jitter / 1e6::double precision) AS jitter,
  coalesce(o.rolname::text, s.owner_name) AS owner,
  s.task, s.payload, s.queue, s.priority::integer AS priority, s.max_attempts, s.max_crashes,
  s.group_key, s.headers, s.created_at,
  s.command,
  make_interval(secs => s.timeout / 1e6::double precision) AS timeout,
  coalesce(p.rolname::text, s.run_as_name) AS run_as
FROM jobq.schedule AS s
LEFT JOIN pg_roles AS o ON o.oid = s.owner_oid
LEFT JOIN pg_roles AS p ON p.oid = s.run_as_oid
LEFT JOIN LATERAL (
  SELECT run_at, state, job_id
  FROM jobq.schedule_run
  WHERE schedule_id = s.schedule_id
  ORDER BY run_at DESC
  LIMIT 1
) AS r ON true
LEFT JOIN jobq.jobs AS j ON j.job_id = r.job_id
LEFT JOIN jobq.finished AS f ON f.job_id = r.job_id
WHERE pg_has_role(current_user, s.owner_oid, 'USAGE')
  OR EXISTS (
    SELECT
    FROM pg_roles AS a
    WHERE a.rolname = 'jobq_admin' AND pg_has_role(current_user, a.oid, 'USAGE')
  );

COMMENT ON VIEW jobq.schedules IS
  'schedules that the role may change: when they are due next, how late they are, what became of their last instant';

CREATE VIEW jobq.schedule_runs WITH (security_barrier) AS
SELECT
  r.name AS schedule, r.run_at, r.until, r.state,
  CASE WHEN r.state = 'enqueued' THEN coalesce(j.state, f.state, 'gone') END AS outcome,
  coalesce(r.reason, f.reason) AS reason,
  r.job_id, r.noted_at, f.ended_at
FROM jobq.schedule_run AS r
LEFT JOIN jobq.jobs AS j ON j.job_id = r.job_id
LEFT JOIN jobq.finished AS f ON f.job_id = r.job_id
WHERE pg_has_role(current_user, r.owner_oid, 'USAGE')
  OR EXISTS (
    SELECT
    FROM pg_roles AS a
    WHERE a.rolname = 'jobq_admin' AND pg_has_role(current_user, a.oid, 'USAGE')
  );

COMMENT ON VIEW jobq.schedule_runs IS
  'what became of each instant of the role''s schedules: enqueued and how the job ended, waiting, skipped, or missed with its reason; until: of all instants from run_at to that one';
