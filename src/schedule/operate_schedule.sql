-- Schedules put to rest and woken, run by hand, removed.

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
