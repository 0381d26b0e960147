-- health: a row for each check; here on a server where no process of jobq runs (jobq.enabled is off), and nothing is late.
\set VERBOSITY terse
SET client_min_messages = warning;

-- its columns
SELECT * FROM jobq.health() WHERE false;
SELECT proargnames, proallargtypes::regtype[], provolatile, proretset FROM pg_proc WHERE oid = 'jobq.health'::regproc;

-- every check, and what it says where that does not depend on the machine
SELECT check_name, ok FROM jobq.health() WHERE check_name NOT IN ('oldest snapshot', 'prepared transactions', 'worker slots');
SELECT message FROM jobq.health() WHERE check_name = 'preloaded';
SELECT regexp_replace(message, '\d+(\.\d+)+', 'N', 'g') AS message FROM jobq.health() WHERE check_name = 'version';
SELECT message FROM jobq.health() WHERE check_name = 'manager';
SELECT check_name FROM jobq.health() WHERE check_name IN ('oldest snapshot', 'prepared transactions', 'worker slots');
SELECT bool_and(message <> '' AND ok IS NOT NULL) AS said, count(*) = count(DISTINCT check_name) AS named FROM jobq.health();
SELECT message ~ '^\d+ of \d+ background worker slots \(max_worker_processes\) are free$' FROM jobq.health() WHERE check_name = 'worker slots';

-- a lane is in use until its jobs are claimed and a claim has found no more
CREATE TEMP VIEW busy AS
SELECT ok, substring(message FROM '^(\d+) of ' || current_setting('jobq.max_lanes') || ' lanes \(jobq\.max_lanes\) are in use$')::integer AS lanes
FROM jobq.health() WHERE check_name = 'lanes';
SELECT jobq.create_queue('health lanes');
SELECT lanes AS before FROM busy \gset
SELECT count(jobq.enqueue('t', queue => 'health lanes', priority => n)) FROM generate_series(1, 2) AS n;
SELECT ok, lanes - :before AS more FROM busy;
SELECT count(*) FROM jobq.claim('health lanes', 2);
SELECT ok, lanes - :before AS more FROM busy;
SELECT count(*) FROM jobq.claim('health lanes');
SELECT ok, lanes - :before AS more FROM busy;
SELECT jobq.drop_queue('health lanes', true);

-- a job that is due and still delayed: late after 10 s
SELECT jobq.create_queue('health');
SELECT jobq.enqueue('t', queue => 'health', delay => '1 h') AS job \gset
SELECT ok, message FROM jobq.health() WHERE check_name = 'due jobs';
UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '1 s' WHERE job_id = :job;
SELECT ok, regexp_replace(message, '\d+\.\d s', 'N') AS message FROM jobq.health() WHERE check_name = 'due jobs';
UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '11 s' WHERE job_id = :job;
SELECT ok, regexp_replace(message, '\d+\.\d s', 'N') AS message FROM jobq.health() WHERE check_name = 'due jobs';
-- even a row that no verb can have made blinds no check
UPDATE jobq.delayed SET run_at = '-infinity' WHERE job_id = :job;
SELECT ok FROM jobq.health() WHERE check_name = 'due jobs';
SELECT promoted FROM jobq.sweep();
SELECT ok, message FROM jobq.health() WHERE check_name = 'due jobs';

-- an expired lease that nobody has swept: late after jobq.sweep_grace and 10 s
SELECT count(*) FROM jobq.claim('health');
SELECT ok, message FROM jobq.health() WHERE check_name = 'expired leases';
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE job_id = :job;
SELECT ok, regexp_replace(message, '\d+\.\d s', 'N') AS message FROM jobq.health() WHERE check_name = 'expired leases';
UPDATE jobq.lease SET expires_at = clock_timestamp() - current_setting('jobq.sweep_grace')::interval - interval '11 s' WHERE job_id = :job;
SELECT ok FROM jobq.health() WHERE check_name = 'expired leases';
UPDATE jobq.lease SET expires_at = '-infinity' WHERE job_id = :job;
SELECT ok FROM jobq.health() WHERE check_name = 'expired leases';

-- in a transaction block, in a read-only one, and with any search_path it reads the same; it writes nothing
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
SET LOCAL search_path = '';
SELECT pg_catalog.count(*) FROM jobq.health() WHERE check_name OPERATOR(pg_catalog.=) 'expired leases' AND NOT ok;
SELECT pg_catalog.pg_current_xact_id_if_assigned() IS NULL AS wrote_nothing;
COMMIT;

-- who may ask: a reader, not a worker; it sees what the superuser sees
CREATE ROLE health_reader IN ROLE jobq_reader;
CREATE ROLE health_worker IN ROLE jobq_worker;
SET ROLE health_reader;
SELECT check_name, ok FROM jobq.health() WHERE check_name NOT IN ('oldest snapshot', 'prepared transactions', 'worker slots');
SELECT current_user;
SET ROLE health_worker;
SELECT count(*) FROM jobq.health();
RESET ROLE;
DROP ROLE health_reader, health_worker;

\o /dev/null
SELECT jobq.drop_queue('health', true);
\o
