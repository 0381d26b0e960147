-- Roles and rights: PUBLIC has nothing.

DO $$
DECLARE
  role_name text;
BEGIN
  FOREACH role_name IN ARRAY ARRAY[
    'jobq_producer', 'jobq_worker', 'jobq_reader', 'jobq_scheduler', 'jobq_admin'
  ]
  LOOP
    BEGIN
      EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', role_name);
    EXCEPTION
      -- Another database's extension made it, perhaps at this moment.
      WHEN duplicate_object OR unique_violation THEN
        NULL;
    END;
    IF EXISTS (
      SELECT
      FROM pg_catalog.pg_roles AS r
      WHERE r.rolname = role_name AND (r.rolcanlogin OR r.rolsuper)
    ) THEN
      RAISE EXCEPTION 'role % exists with LOGIN or SUPERUSER', role_name
        USING ERRCODE = 'invalid_role_specification',
              HINT = 'Rename it: jobq grants rights to a group role of that name.';
    END IF;
  END LOOP;

  FOREACH role_name IN ARRAY ARRAY[
    'jobq_producer', 'jobq_worker', 'jobq_reader', 'jobq_scheduler'
  ]
  LOOP
    IF NOT pg_catalog.pg_has_role('jobq_admin', role_name, 'MEMBER') THEN
      BEGIN
        EXECUTE pg_catalog.format('GRANT %I TO jobq_admin', role_name);
      EXCEPTION
        WHEN unique_violation THEN
          NULL;
      END;
    END IF;
  END LOOP;
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA jobq FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA jobq FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA jobq FROM PUBLIC;
REVOKE ALL ON TYPE jobq.claimed_job FROM PUBLIC;

GRANT USAGE ON SCHEMA jobq
TO jobq_producer, jobq_worker, jobq_reader, jobq_scheduler, jobq_admin;

GRANT USAGE ON TYPE jobq.claimed_job TO jobq_worker;

GRANT EXECUTE ON FUNCTION
  jobq.enqueue, jobq.enqueue_unique, jobq.enqueue_batch, jobq.cancel_key
TO jobq_producer;

GRANT EXECUTE ON FUNCTION
  jobq.claim, jobq.claim_from, jobq.renew, jobq.renew_batch, jobq.complete, jobq.complete_batch,
  jobq.complete_and_claim, jobq.fail, jobq.snooze, jobq.sweep
TO jobq_worker;

GRANT EXECUTE ON PROCEDURE jobq.wait, jobq.wait_any TO jobq_worker;

GRANT EXECUTE ON FUNCTION jobq.queue_counts, jobq.lane_states, jobq.health, jobq.next_runs TO jobq_reader;

GRANT EXECUTE ON FUNCTION
  jobq.enqueue_sql, jobq.cancel_sql, jobq.schedule, jobq.schedule_job, jobq.alter_schedule, jobq.unschedule, jobq.pause_schedule, jobq.resume_schedule,
  jobq.run_schedule, jobq.next_runs
TO jobq_scheduler;

GRANT SELECT ON jobq.schedules, jobq.schedule_runs, jobq.sql_jobs TO jobq_scheduler, jobq_reader;

GRANT SELECT ON
  jobq.jobs, jobq.history, jobq.dead_jobs, jobq.failures, jobq.queues, jobq.workers, jobq.lanes,
  jobq.groups
TO jobq_reader;

GRANT EXECUTE ON FUNCTION
  jobq.create_queue, jobq.alter_queue, jobq.drop_queue, jobq.pause_queue, jobq.resume_queue,
  jobq.purge_queue, jobq.set_group, jobq.cancel, jobq.retry, jobq.retry_dead, jobq.reschedule,
  jobq.adopt
TO jobq_admin;

-- The last thing that whoever creates the extension reads.
SELECT jobq.warn_if_nothing_runs();
