-- Schedules: rules that make jobs.

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
  headers jsonb DEFAULT NULL
) RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_alter_schedule';

COMMENT ON FUNCTION jobq.alter_schedule IS
  'changes a schedule; NULL leaves what is there, -infinity and infinity take away starts_at and ends_at';

CREATE FUNCTION jobq.unschedule(name text) RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_unschedule';

COMMENT ON FUNCTION jobq.unschedule IS
  'removes a schedule; false if there is none of that name; jobs that it has made stay';

CREATE FUNCTION jobq.pause_schedule(name text) RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_pause_schedule';

COMMENT ON FUNCTION jobq.pause_schedule IS 'lets a schedule fire no more until it is resumed';

CREATE FUNCTION jobq.resume_schedule(name text) RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_resume_schedule';

COMMENT ON FUNCTION jobq.resume_schedule IS
  'lets a paused or stopped schedule fire again, from now on';

CREATE FUNCTION jobq.run_schedule(name text) RETURNS bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_run_schedule';

COMMENT ON FUNCTION jobq.run_schedule IS 'enqueues the schedule''s job now and returns its id';
