-- Views: where jobs stand, in words.

CREATE VIEW jobq.jobs AS
SELECT
  j.job_id, q.name AS queue, j.task, l.state, l.attempt, l.tries, l.crashes,
  j.priority::integer AS priority, j.group_key,
  CASE WHEN l.replaced_by IS NULL THEN j.job_key END AS job_key,
  l.run_at, l.worker, l.lease_expires_at, j.enqueued_at
FROM (
  SELECT job_id, 'delayed' AS state, attempt, tries, crashes, run_at,
    NULL::text AS worker, NULL::timestamp with time zone AS lease_expires_at,
    NULL::bigint AS replaced_by
  FROM jobq.delayed
  UNION ALL
  SELECT job_id, 'ready', attempt, tries, crashes, NULL, NULL, NULL, NULL
  FROM jobq.ready
  UNION ALL
  SELECT job_id, 'running', attempt, tries, crashes, NULL, worker, expires_at, replaced_by
  FROM jobq.lease
) AS l
JOIN jobq.job AS j ON j.job_id = l.job_id
JOIN jobq.queue AS q ON q.queue_id = j.queue_id;

COMMENT ON VIEW jobq.jobs IS 'live jobs: delayed, ready or running';

CREATE VIEW jobq.history AS
SELECT
  f.job_id, q.name AS queue, j.task, f.state, f.attempt, f.tries, f.reason, f.result,
  f.worker, f.claimed_at, f.ended_at, j.enqueued_at
FROM jobq.finished AS f
JOIN jobq.job AS j ON j.job_id = f.job_id
JOIN jobq.queue AS q ON q.queue_id = f.queue_id;

COMMENT ON VIEW jobq.history IS 'jobs that are over: completed, cancelled or dead, until they are pruned';

CREATE VIEW jobq.dead_jobs AS
SELECT h.*, j.payload, e.error AS last_error
FROM jobq.history AS h
JOIN jobq.job AS j ON j.job_id = h.job_id
LEFT JOIN LATERAL (
  SELECT f.error
  FROM jobq.failure AS f
  WHERE f.job_id = h.job_id
  ORDER BY f.attempt DESC
  LIMIT 1
) AS e ON true
WHERE h.state = 'dead';

COMMENT ON VIEW jobq.dead_jobs IS 'the dead of the history, with payload and last error';

CREATE VIEW jobq.failures AS
SELECT job_id, attempt, kind, error, worker, claimed_at, failed_at
FROM jobq.failure;

COMMENT ON VIEW jobq.failures IS 'attempts that did not complete: error, expired or cancelled';

-- The age is that of the job at the head of the queue's oldest lane of one priority.
CREATE VIEW jobq.queues AS
SELECT
  q.name AS queue, q.paused,
  make_interval(secs => q.lease / 1e6::double precision) AS lease,
  q.max_attempts, q.max_crashes,
  make_interval(secs => q.retry_base / 1e6::double precision) AS retry_base,
  make_interval(secs => q.retry_cap / 1e6::double precision) AS retry_cap,
  coalesce(make_interval(secs => q.keep_completed / 1e6::double precision), '1000 years')
    AS keep_completed,
  coalesce(make_interval(secs => q.keep_dead / 1e6::double precision), '1000 years') AS keep_dead,
  (SELECT count(*) FROM jobq.lease AS l WHERE l.queue_id = q.queue_id) AS running,
  (
    SELECT max(clock_timestamp() - j.enqueued_at)
    FROM generate_series(0, 9) AS p(priority)
    CROSS JOIN LATERAL (
      SELECT r.job_id
      FROM jobq.ready AS r
      WHERE r.queue_id = q.queue_id AND r.priority = p.priority
      ORDER BY r.tag, r.job_id
      LIMIT 1
    ) AS head
    JOIN jobq.job AS j ON j.job_id = head.job_id
  ) AS oldest_ready_age
FROM jobq.queue AS q;

COMMENT ON VIEW jobq.queues IS
  'queues with their settings, as create_queue takes them; a keep time of 1000 years is for ever';

CREATE VIEW jobq.workers AS
SELECT worker, count(*) AS running, min(claimed_at) AS oldest_claim, min(expires_at) AS next_expiry
FROM jobq.lease
GROUP BY worker;

COMMENT ON VIEW jobq.workers IS 'workers by their label, with what they have';
