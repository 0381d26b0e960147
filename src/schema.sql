-- The tables: what a job is stands in jobq.job, where it stands is a row in exactly one line
-- (ready, delayed, lease or finished).

-- The schema may have stood here before: whoever owns it could plant objects into it.
DO $$
BEGIN
  IF EXISTS (
    SELECT
    FROM pg_catalog.pg_namespace AS n
    JOIN pg_catalog.pg_roles AS r ON r.oid = n.nspowner
    WHERE n.nspname = 'jobq' AND r.rolname <> current_user AND NOT r.rolsuper
  ) THEN
    RAISE EXCEPTION 'schema jobq belongs to another role'
      USING ERRCODE = 'insufficient_privilege',
            HINT = 'Drop the schema, or give it to the role that creates the extension.';
  END IF;
  IF EXISTS (
    SELECT
    FROM pg_catalog.pg_namespace AS n
    CROSS JOIN pg_catalog.aclexplode(n.nspacl) AS a
    WHERE n.nspname = 'jobq' AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
  ) THEN
    RAISE EXCEPTION 'others than its owner may create in schema jobq'
      USING ERRCODE = 'insufficient_privilege',
            HINT = 'Drop the schema, or revoke CREATE on it from them.';
  END IF;
  IF EXISTS (
    SELECT FROM pg_catalog.pg_class WHERE relnamespace = 'jobq'::pg_catalog.regnamespace
    UNION ALL
    SELECT FROM pg_catalog.pg_proc WHERE pronamespace = 'jobq'::pg_catalog.regnamespace
    UNION ALL
    SELECT FROM pg_catalog.pg_operator WHERE oprnamespace = 'jobq'::pg_catalog.regnamespace
    UNION ALL
    SELECT FROM pg_catalog.pg_type WHERE typnamespace = 'jobq'::pg_catalog.regnamespace
  ) THEN
    RAISE EXCEPTION 'schema jobq is not empty'
      USING ERRCODE = 'duplicate_schema',
            HINT = 'Drop the schema, or move what is in it to another one.';
  END IF;
END
$$;

COMMENT ON SCHEMA jobq IS 'job queue and scheduler';

-- Refuses to go on without the preloaded library.
CREATE FUNCTION jobq.require_preload() RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_require_preload';

COMMENT ON FUNCTION jobq.require_preload() IS
  'raises 55000 unless shared_preload_libraries has jobq; for the install script';

SELECT jobq.require_preload();

CREATE SEQUENCE jobq.job_number AS bigint;

COMMENT ON SEQUENCE jobq.job_number IS 'ids of jobs';

CREATE SEQUENCE jobq.queue_number AS bigint;

COMMENT ON SEQUENCE jobq.queue_number IS 'ids of queues, never used again';

CREATE TABLE jobq.queue (
  queue_id bigint PRIMARY KEY,
  name text NOT NULL UNIQUE,
  paused boolean NOT NULL,
  max_attempts integer NOT NULL,
  max_crashes integer NOT NULL,
  lease bigint NOT NULL,
  retry_base bigint NOT NULL,
  retry_cap bigint NOT NULL,
  keep_completed bigint,
  keep_dead bigint
);

COMMENT ON TABLE jobq.queue IS 'queues and their settings; lengths are microseconds, a keep time of NULL is for ever';

CREATE TABLE jobq.group_weight (
  queue_id bigint NOT NULL,
  group_key text NOT NULL,
  weight integer NOT NULL,
  PRIMARY KEY (queue_id, group_key)
);

COMMENT ON TABLE jobq.group_weight IS 'groups'' shares of their queues; a group without a row has 1';

CREATE TABLE jobq.job (
  job_id bigint PRIMARY KEY,
  queue_id bigint NOT NULL,
  enqueued_at timestamp with time zone NOT NULL,
  priority smallint NOT NULL,
  max_attempts integer,
  max_crashes integer,
  task text NOT NULL,
  group_key text,
  job_key text,
  payload jsonb NOT NULL,
  headers jsonb
);

COMMENT ON TABLE jobq.job IS 'what a job is; limits of NULL are the queue''s';

-- A tag leaves room for those that are given after it.
CREATE TABLE jobq.ready (
  queue_id bigint NOT NULL,
  tag bigint NOT NULL CHECK (tag BETWEEN 1 AND 9000000000000000000),
  job_id bigint NOT NULL UNIQUE,
  attempt integer NOT NULL,
  tries integer NOT NULL,
  crashes integer NOT NULL,
  priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 9),
  group_key text,
  PRIMARY KEY (queue_id, priority, tag, job_id)
) WITH (
  vacuum_truncate = off,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 50000,
  autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 10000
);

COMMENT ON TABLE jobq.ready IS
  'line of the jobs that may be claimed, in (priority, tag) order; rows are only inserted and deleted';

CREATE TABLE jobq.delayed (
  job_id bigint PRIMARY KEY,
  queue_id bigint NOT NULL,
  run_at timestamp with time zone NOT NULL,
  attempt integer NOT NULL,
  tries integer NOT NULL,
  crashes integer NOT NULL
) WITH (
  vacuum_truncate = off,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 50000,
  autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 10000
);

CREATE INDEX delayed_run_at ON jobq.delayed (run_at, job_id);

COMMENT ON TABLE jobq.delayed IS 'line of the jobs that wait for their time';

CREATE TABLE jobq.lease (
  job_id bigint PRIMARY KEY,
  queue_id bigint NOT NULL,
  claimed_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  length bigint NOT NULL,
  replaced_by bigint,
  attempt integer NOT NULL,
  tries integer NOT NULL,
  crashes integer NOT NULL,
  keyed boolean NOT NULL,
  worker text NOT NULL
) WITH (
  vacuum_truncate = off,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 50000,
  autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 10000
);

CREATE INDEX lease_expires_at ON jobq.lease (expires_at);

COMMENT ON TABLE jobq.lease IS
  'line of the jobs that a worker has; length is microseconds; keyed: the job has a key to free when it ends';

CREATE TABLE jobq.finished (
  job_id bigint PRIMARY KEY,
  queue_id bigint NOT NULL,
  claimed_at timestamp with time zone,
  ended_at timestamp with time zone NOT NULL,
  prune_at timestamp with time zone,
  attempt integer NOT NULL,
  tries integer NOT NULL,
  state text NOT NULL CHECK (state IN ('completed', 'cancelled', 'dead')),
  reason text,
  worker text,
  result jsonb
);

CREATE INDEX finished_prune_at ON jobq.finished (prune_at) WHERE prune_at IS NOT NULL;

CREATE INDEX finished_dead ON jobq.finished (queue_id, job_id) WHERE state = 'dead';

COMMENT ON TABLE jobq.finished IS
  'line of the jobs that are over; pruned from prune_at on, kept for ever if that is NULL';

CREATE TABLE jobq.key (
  queue_id bigint NOT NULL,
  job_key text NOT NULL,
  job_id bigint NOT NULL UNIQUE,
  PRIMARY KEY (queue_id, job_key)
);

COMMENT ON TABLE jobq.key IS 'keys of the live jobs that have one';

CREATE TABLE jobq.failure (
  job_id bigint NOT NULL,
  attempt integer NOT NULL,
  kind text NOT NULL CHECK (kind IN ('error', 'expired', 'cancelled')),
  claimed_at timestamp with time zone NOT NULL,
  failed_at timestamp with time zone NOT NULL,
  worker text NOT NULL,
  error text,
  PRIMARY KEY (job_id, attempt)
);

COMMENT ON TABLE jobq.failure IS 'attempts that did not complete; pruned with their job';

CREATE TABLE jobq.sql_command (
  job_id bigint PRIMARY KEY,
  due_at timestamp with time zone NOT NULL,
  timeout bigint NOT NULL CHECK (timeout > 0),
  role_oid oid NOT NULL,
  role_name text NOT NULL,
  command text NOT NULL
);

COMMENT ON TABLE jobq.sql_command IS
  'what a SQL job runs, as whom, since when (the first try), and for how many microseconds at most; pruned with its job';

CREATE SEQUENCE jobq.schedule_number AS bigint;

COMMENT ON SEQUENCE jobq.schedule_number IS 'ids of schedules, never used again';

CREATE TABLE jobq.home (
  home_id bigint PRIMARY KEY CHECK (home_id = 1),
  system_identifier bigint NOT NULL,
  database_oid oid NOT NULL
);

COMMENT ON TABLE jobq.home IS
  'where schedules and SQL jobs are at home: a copy of them in another database rests until jobq.adopt()';

-- All but handled_until, next_run_at, waiting and stopped is what somebody wants; those are how far
-- it has come. next_run_at follows from the others: it is there to be found by.
CREATE TABLE jobq.schedule (
  schedule_id bigint PRIMARY KEY,
  created_at timestamp with time zone NOT NULL,
  starts_at timestamp with time zone,
  ends_at timestamp with time zone,
  handled_until timestamp with time zone NOT NULL,
  next_run_at timestamp with time zone,
  waiting timestamp with time zone,
  jitter bigint NOT NULL CHECK (jitter >= 0),
  owner_oid oid NOT NULL,
  max_attempts integer CHECK (max_attempts > 0),
  max_crashes integer CHECK (max_crashes > 0),
  priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 9),
  paused boolean NOT NULL,
  name text NOT NULL UNIQUE CHECK (octet_length(name) BETWEEN 1 AND 63),
  owner_name text NOT NULL,
  expression text NOT NULL,
  timezone text NOT NULL,
  overlap text NOT NULL CHECK (overlap IN ('skip', 'queue', 'allow')),
  catch_up text NOT NULL CHECK (catch_up IN ('none', 'once', 'all')),
  stopped text,
  queue text NOT NULL,
  task text NOT NULL CHECK (octet_length(task) BETWEEN 1 AND 63),
  group_key text CHECK (octet_length(group_key) <= 255),
  payload jsonb NOT NULL,
  headers jsonb,
  timeout bigint CHECK (timeout > 0),
  run_as_oid oid,
  run_as_name text,
  command text,
  CHECK (
    (command IS NULL) = (timeout IS NULL)
    AND (command IS NULL) = (run_as_oid IS NULL)
    AND (command IS NULL) = (run_as_name IS NULL)
  )
) WITH (fillfactor = 70);

CREATE INDEX schedule_next_run_at ON jobq.schedule (next_run_at, schedule_id)
WHERE next_run_at IS NOT NULL;

CREATE INDEX schedule_waiting ON jobq.schedule (schedule_id) WHERE waiting IS NOT NULL;

COMMENT ON TABLE jobq.schedule IS
  'rules that make jobs, SQL jobs if there is a command; jitter and timeout are microseconds; the instants up to handled_until are dealt with; waiting: one whose job is to be made when the last one has ended';

CREATE TABLE jobq.schedule_run (
  schedule_id bigint NOT NULL,
  run_at timestamp with time zone NOT NULL,
  until timestamp with time zone,
  noted_at timestamp with time zone NOT NULL,
  prune_at timestamp with time zone,
  job_id bigint,
  owner_oid oid NOT NULL,
  name text NOT NULL,
  state text NOT NULL CHECK (state IN ('enqueued', 'waiting', 'skipped', 'missed')),
  reason text,
  PRIMARY KEY (schedule_id, run_at)
);

CREATE INDEX schedule_run_prune_at ON jobq.schedule_run (prune_at) WHERE prune_at IS NOT NULL;

COMMENT ON TABLE jobq.schedule_run IS
  'what became of each instant of a schedule, once; until: of all instants from run_at to that one';

SELECT pg_catalog.pg_extension_config_dump('jobq.job_number', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.queue_number', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.queue', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.group_weight', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.job', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.ready', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.delayed', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.lease', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.finished', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.key', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.failure', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.sql_command', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.schedule_number', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.home', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.schedule', '');
SELECT pg_catalog.pg_extension_config_dump('jobq.schedule_run', '');
