-- Schedules: rules that make jobs, or SQL jobs.

CREATE FUNCTION jobq.schedule_job(
  name text,
  schedule text,
  task text,
  payload jsonb DEFAULT '{}',
  queue text DEFAULT 'default',
  timezone text DEFAULT 'UTC',
  overlap text DEFAULT 'skip',
  catch_up text DEFAULT 'once',
  starts_at timestamp with time zone DEFAULT NULL,
  ends_at timestamp with time zone DEFAULT NULL,
  jitter interval DEFAULT '0',
  priority integer DEFAULT 5,
  max_attempts integer DEFAULT NULL,
  max_crashes integer DEFAULT NULL,
  group_key text DEFAULT NULL,
  headers jsonb DEFAULT NULL
) RETURNS bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_schedule_job';

COMMENT ON FUNCTION jobq.schedule_job IS
  'makes a schedule that enqueues a job at each of its instants, or changes the caller''s schedule of that name; returns its id';

-- The first three arguments are pg_cron's. With two they are schedule and command.
CREATE FUNCTION jobq.schedule(
  name text,
  schedule text,
  command text DEFAULT NULL,
  timezone text DEFAULT 'UTC',
  overlap text DEFAULT 'skip',
  catch_up text DEFAULT 'once',
  starts_at timestamp with time zone DEFAULT NULL,
  ends_at timestamp with time zone DEFAULT NULL,
  jitter interval DEFAULT '0',
  timeout interval DEFAULT '1 h',
  max_attempts integer DEFAULT 1,
  run_as text DEFAULT NULL
) RETURNS bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_schedule';

COMMENT ON FUNCTION jobq.schedule IS
  'makes a schedule that runs a command in this database at each of its instants, or changes the caller''s schedule of that name; returns its id';

CREATE FUNCTION jobq.alter_schedule(
  name text,
  schedule text DEFAULT NULL,
  task text DEFAULT NULL,
  payload jsonb DEFAULT NULL,
  queue text DEFAULT NULL,
  timezone text DEFAULT NULL,
  overlap text DEFAULT NULL,
  catch_up text DEFAULT NULL,
  starts_at timestamp with time zone DEFAULT NULL,
  ends_at timestamp with time zone DEFAULT NULL,
  jitter interval DEFAULT NULL,
  priority integer DEFAULT NULL,
  max_attempts integer DEFAULT NULL,
  max_crashes integer DEFAULT NULL,
  group_key text DEFAULT NULL,
  headers jsonb DEFAULT NULL,
  command text DEFAULT NULL,
  timeout interval DEFAULT NULL,
  run_as text DEFAULT NULL
) RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_alter_schedule';

COMMENT ON FUNCTION jobq.alter_schedule IS
  'changes a schedule; NULL leaves what is there, -infinity and infinity take away starts_at and ends_at';
