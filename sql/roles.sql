-- Roles: what they are, how they come and go, and that nobody is another one after a call. Who may do what: test/tables.
\set VERBOSITY terse
SET client_min_messages = warning;
SET jobq.claim_in_transaction = 'allow';

-- the roles: no way in, no power but what they were granted
SELECT rolname, rolcanlogin, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls
FROM pg_roles WHERE rolname IN ('jobq_producer', 'jobq_worker', 'jobq_reader', 'jobq_scheduler', 'jobq_admin') ORDER BY rolname;

CREATE ROLE jobq_roles_nobody;
-- what a call as a role ends with; a call that is let through ends with its own word or error
CREATE FUNCTION pg_temp.ends(role name, call text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    state text;
    message text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    EXECUTE call;
    RAISE SQLSTATE 'UNDO0' USING MESSAGE = current_user;
EXCEPTION
    WHEN SQLSTATE 'UNDO0' THEN
        GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
        RETURN CASE WHEN message = role THEN 'allowed' ELSE 'LEFT AS ' || message END;
    WHEN insufficient_privilege THEN
        GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
        RETURN CASE WHEN message ~ '^permission denied for (function|schema|table|view|sequence)' THEN 'denied' ELSE message END;
    WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
        RETURN state || ' ' || message;
END
$$;
SELECT jobq.create_queue('roles', retry_base => '0') AS made;
SELECT jobq.enqueue('t', queue => 'roles', job_key => 'waiting') AS waiting \gset

-- membership is all it takes
CREATE ROLE jobq_roles_app IN ROLE jobq_producer, jobq_worker;
SET ROLE jobq_roles_app;
SELECT jobq.enqueue('t', '{"by": "app"}', 'roles', 0) AS job \gset
SELECT payload, current_user FROM jobq.claim('roles');
SELECT jobq.renew(:job, 1) IS NOT NULL AS renewed, jobq.complete(:job, 1) AS completed, current_user;
-- an error in a call leaves the caller who it was
SELECT jobq.enqueue('t', queue => 'roles missing');
SELECT current_user, session_user = current_user AS raised;
\set VERBOSITY sqlstate
SELECT jobq.enqueue('t', queue => 'roles', job_key => 'waiting', job_key_mode => 'reject') IS NULL;
\set VERBOSITY terse
SELECT current_user;
BEGIN;
SAVEPOINT a;
SELECT count(*) FROM jobq.claim('roles', 0);
ROLLBACK TO a;
SELECT current_user;
ROLLBACK;
-- also when it comes from deep inside, from a statement that runs with the owner's rights
SET default_transaction_read_only = on;
\set VERBOSITY sqlstate
SELECT count(*) FROM jobq.claim('roles');
\set VERBOSITY terse
SELECT current_user;
SELECT count(*) FROM jobq.job;
RESET default_transaction_read_only;
SELECT job_id FROM jobq.jobs;
SELECT payload FROM jobq.job;
COPY jobq.failure TO STDOUT;
RESET ROLE;

-- a function of another's that calls jobq does so with the caller's rights, or with its owner's if it says so
CREATE FUNCTION pg_temp.enqueues() RETURNS boolean LANGUAGE sql AS $$ SELECT jobq.enqueue('t', queue => 'roles') IS NOT NULL $$;
CREATE FUNCTION pg_temp.enqueues_for_all() RETURNS boolean LANGUAGE sql SECURITY DEFINER AS $$ SELECT jobq.enqueue('t', queue => 'roles') IS NOT NULL $$;
SELECT pg_temp.ends('jobq_roles_nobody', 'SELECT pg_temp.enqueues()'), pg_temp.ends('jobq_roles_nobody', 'SELECT pg_temp.enqueues_for_all()');

-- case 148: an error tells nothing of another's job but its number
GRANT USAGE ON SCHEMA jobq TO jobq_roles_nobody;
GRANT EXECUTE ON FUNCTION jobq.enqueue TO jobq_roles_nobody;
SELECT regexp_replace(pg_temp.ends('jobq_roles_nobody', 'SELECT jobq.enqueue(''t'', queue => ''roles'', job_key => ''waiting'', job_key_mode => ''reject'')'), 'job \d+', 'job N');
REVOKE EXECUTE ON FUNCTION jobq.enqueue FROM jobq_roles_nobody;
REVOKE USAGE ON SCHEMA jobq FROM jobq_roles_nobody;

-- case 139: roles come, go and are renamed; jobs are nobody's
DROP ROLE jobq_roles_app;
CREATE ROLE "jobq_roles ""Weird""" IN ROLE jobq_worker, jobq_producer;
SET ROLE "jobq_roles ""Weird""";
SELECT jobq.enqueue('t', '{"by": "weird"}', 'roles', 0) AS job \gset
SELECT payload FROM jobq.claim('roles');
RESET ROLE;
ALTER ROLE "jobq_roles ""Weird""" RENAME TO jobq_roles_other;
SET ROLE jobq_roles_other;
SELECT jobq.complete(:job, 1);
RESET ROLE;
REASSIGN OWNED BY jobq_roles_other TO jobq_roles_nobody;
DROP OWNED BY jobq_roles_other;
DROP ROLE jobq_roles_other;
SELECT state FROM jobq.history WHERE job_id = :job;
DROP ROLE jobq_roles_nobody;

-- row security on a job's own tables is the caller's affair: the tables of jobq have none, and a bypass gives nothing here
CREATE ROLE jobq_roles_bypass BYPASSRLS;
SELECT pg_temp.ends('jobq_roles_bypass', 'SELECT * FROM jobq.job'), pg_temp.ends('jobq_roles_bypass', 'SELECT jobq.claim(''roles'')');
DROP ROLE jobq_roles_bypass;

-- a role that is there already is taken, unless it could log in or is a superuser
CREATE DATABASE jobq_roles;
\set here :DBNAME
\c jobq_roles
SET client_min_messages = warning;
ALTER ROLE jobq_reader LOGIN;
CREATE EXTENSION jobq;
\echo :LAST_ERROR_SQLSTATE
ALTER ROLE jobq_reader NOLOGIN;
ALTER ROLE jobq_worker SUPERUSER;
CREATE EXTENSION jobq;
\echo :LAST_ERROR_SQLSTATE
ALTER ROLE jobq_worker NOSUPERUSER;
CREATE EXTENSION jobq;
-- a role without the right to make extensions makes none
DROP EXTENSION jobq;
CREATE ROLE jobq_roles_maker;
GRANT ALL ON DATABASE jobq_roles TO jobq_roles_maker;
SET ROLE jobq_roles_maker;
CREATE EXTENSION jobq;
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
-- the roles outlive the extension, for other databases have them too
SELECT count(*) FROM pg_roles WHERE rolname IN ('jobq_producer', 'jobq_worker', 'jobq_reader', 'jobq_scheduler', 'jobq_admin');
\c :here
DROP DATABASE jobq_roles;
DROP ROLE jobq_roles_maker;

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^roles( |$)';
\o
