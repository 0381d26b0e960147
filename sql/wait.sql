-- wait and wait_any: what they answer, to whom, and where they may be called. Who is woken by what is in test/t (040 and up): a wait that
-- is not answered at once here has a timeout of moments. In a database of its own: nobody has used its default queue.
\set VERBOSITY terse
CREATE DATABASE jobq_wait;
\set here :DBNAME
\c jobq_wait
SET client_min_messages = error;
CREATE EXTENSION jobq;
SET client_min_messages = warning;
SET jobq.claim_in_transaction = 'allow';

-- how long a wait took, as a word: at once, or as long as it was told to and not much longer
CREATE FUNCTION pg_temp.after(start timestamptz, told interval) RETURNS text
LANGUAGE sql AS $$
SELECT CASE WHEN took < told THEN 'before its time' WHEN took < told + '20 s' THEN 'at its time' ELSE 'late' END
FROM (SELECT clock_timestamp() - start) AS t (took)
$$;

-- the default queue need not be there: it is empty; nobody makes it by waiting
CALL jobq.wait(timeout => '0');
CALL jobq.wait('default', '10 ms');
CALL jobq.wait_any('{default}', '10 ms');
SELECT count(*) FROM jobq.queues WHERE queue = 'default';

SELECT jobq.create_queue('wait'), jobq.create_queue('wait too');
SELECT clock_timestamp() AS start \gset
CALL jobq.wait('wait', '200 ms');
SELECT pg_temp.after(:'start', '200 ms');
CALL jobq.wait_any('{wait,wait too}', '0.2 s');
SELECT pg_temp.after(:'start', '400 ms');
-- zero is a look
CALL jobq.wait('wait', '0');
CALL jobq.wait_any('{wait}', '0');

-- something is there: at once, however long the timeout; and a wait takes nothing
SELECT jobq.enqueue('t', queue => 'wait') IS NOT NULL AS made;
CALL jobq.wait('wait');
CALL jobq.wait('wait', '1 h');
CALL jobq.wait('wait', '0');
CALL jobq.wait('wait', '365000 days');
CALL jobq.wait_any('{wait}');
CALL jobq.wait_any('{wait too,wait}', '1 h');
SELECT attempt, state FROM jobq.jobs WHERE queue = 'wait';

-- of several that have something it is the first in the order given; a name may come twice
SELECT jobq.enqueue('t', queue => 'wait too') IS NOT NULL AS made;
CALL jobq.wait_any('{wait too,wait}', '1 h');
CALL jobq.wait_any('{wait,wait too}', '1 h');
CALL jobq.wait_any('{wait,wait too,wait,wait}', '1 h');
CALL jobq.wait_any('[7:8]={wait,wait too}', '1 h');

-- The matrix of NULLs (null_matrix) calls functions: these cannot be called where it does. A procedure that is new here has no test.
SELECT proname, proargnames, proargmodes, pronargdefaults FROM pg_proc WHERE pronamespace = 'jobq'::regnamespace AND prokind = 'p' ORDER BY 1;
-- NULL where there is a default means the default; the INOUT parameter says nothing
CALL jobq.wait(NULL, '0', NULL);
CALL jobq.wait('wait', NULL, NULL);
CALL jobq.wait('wait', '0', true);
CALL jobq.wait('wait', '0', ready => false);
CALL jobq.wait_any('{wait}', NULL, 'anything');

-- bad input
CALL jobq.wait_any(NULL);
CALL jobq.wait_any(queues => NULL, timeout => NULL, queue => NULL);
CALL jobq.wait_any();
CALL jobq.wait_any('{}');
CALL jobq.wait_any('{NULL}');
CALL jobq.wait_any('{wait,NULL}');
CALL jobq.wait_any('{{wait},{wait too}}');
CALL jobq.wait_any('{wait,nowhere}', '0');
CALL jobq.wait_any('{nowhere,wait}', '0');
CALL jobq.wait('nowhere', '0');
CALL jobq.wait('', '0');
CALL jobq.wait(repeat('q', 64), '0');
CALL jobq.wait('sql/10', '0');
CALL jobq.wait('wait', '-1 s');
CALL jobq.wait('wait', '-1 day 25 h');
CALL jobq.wait('wait', '1 month');
CALL jobq.wait('wait', '1 year');
CALL jobq.wait('wait', '178000000 years');
CALL jobq.wait_any('{wait}', '-1 s');
CALL jobq.wait_any('{wait}', '1 month');
-- 64 queues and no more
SELECT array_agg(text 'wait') AS most FROM generate_series(1, 64) \gset
SELECT array_agg(text 'wait') AS too_many FROM generate_series(1, 65) \gset
CALL jobq.wait_any(:'most', '0');
CALL jobq.wait_any(:'too_many', '0');
-- an error that depends on what is ready would be found in production only: names are checked first
CALL jobq.wait_any('{wait,nowhere,wait too}', '1 h');

-- not in a transaction block, with a hint; nothing else is lost by it
\set VERBOSITY default
BEGIN;
CALL jobq.wait('wait', '0');
ROLLBACK;
\set VERBOSITY terse
BEGIN;
CALL jobq.wait_any('{wait}', '0');
ROLLBACK;
BEGIN;
SAVEPOINT s;
CALL jobq.wait('wait', '0');
ROLLBACK TO s;
SELECT 'and it goes on';
COMMIT;
\set AUTOCOMMIT off
CALL jobq.wait('wait', '0');
ROLLBACK;
\set AUTOCOMMIT on
-- several statements in one message are a transaction block too
CALL jobq.wait('wait', '0') \; SELECT 1;
SELECT 1 \; CALL jobq.wait('wait', '0');

-- not in a function, nor anywhere else where the caller's transaction cannot end
CREATE FUNCTION pg_temp.waits() RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    ready boolean;
BEGIN
    CALL jobq.wait('wait', '0', ready);
    RETURN ready;
END
$$;
SELECT pg_temp.waits();
DO $$
DECLARE
    ready boolean;
BEGIN
    CALL jobq.wait('wait', '0', ready);
EXCEPTION
    WHEN division_by_zero THEN
        RAISE EXCEPTION 'unreachable';
END
$$;
CREATE PROCEDURE pg_temp.waits_with_set(INOUT ready boolean DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    CALL jobq.wait('wait', '0', ready);
END
$$;
CALL pg_temp.waits_with_set();
CREATE PROCEDURE pg_temp.waits_as_definer(INOUT ready boolean DEFAULT NULL)
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    CALL jobq.wait('wait', '0', ready);
END
$$;
CALL pg_temp.waits_as_definer();
-- the error may be caught, and the rest of the work is done
DO $$
BEGIN
    PERFORM pg_temp.waits();
EXCEPTION
    WHEN active_sql_transaction THEN
        RAISE WARNING 'caught';
END
$$;

-- in a DO block and in a procedure of its own it works, with variables that outlive it
CREATE PROCEDURE pg_temp.waits_twice(queue text, INOUT first boolean DEFAULT NULL, INOUT second boolean DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
    CALL jobq.wait(queue, '0', first);
    COMMIT;
    CALL jobq.wait(queue, '1 ms', second);
END
$$;
CALL pg_temp.waits_twice('wait');
CREATE TABLE pg_temp.log (queue text, ready boolean);
DO $$
DECLARE
    ready boolean;
    found text;
    name text;
BEGIN
    FOR name IN SELECT unnest(ARRAY['wait', 'wait too']) LOOP
        INSERT INTO log VALUES (name, NULL);
        CALL jobq.wait(name, '0', ready);
        UPDATE log SET ready = waited FROM (SELECT ready) AS r (waited) WHERE log.queue = name;
    END LOOP;
    CALL jobq.wait_any('{wait too,wait}', '0', found);
    INSERT INTO log VALUES (found, NULL);
    CALL jobq.wait('wait', '10 ms', ready);
END
$$;
SELECT * FROM log;
-- what was done before a wait is committed by it, as by any COMMIT
DO $$
DECLARE
    ready boolean;
BEGIN
    DELETE FROM log;
    CALL jobq.wait('wait', '0', ready);
    RAISE EXCEPTION 'after';
END
$$;
SELECT count(*) FROM log;

-- what may not be claimed is not waited for: a paused queue
SELECT jobq.pause_queue('wait');
CALL jobq.wait('wait', '20 ms');
CALL jobq.wait_any('{wait,wait too}', '20 ms');
CALL jobq.wait_any('{wait}', '20 ms');
SELECT jobq.resume_queue('wait');
CALL jobq.wait('wait', '1 h');

-- a queue with delayed jobs only, also due ones that nobody has promoted yet; one whose jobs are all running, and one whose jobs have ended
SELECT jobq.create_queue('wait later');
SELECT jobq.enqueue('t', queue => 'wait later', delay => '1 h') IS NOT NULL AS made;
CALL jobq.wait('wait later', '20 ms');
SELECT jobq.enqueue('t', queue => 'wait later', delay => '1 us') IS NOT NULL AS made;
CALL jobq.wait('wait later', '20 ms');
SELECT promoted FROM jobq.sweep();
CALL jobq.wait('wait later', '1 h');
SELECT job_id AS job FROM jobq.claim('wait later') \gset
CALL jobq.wait('wait later', '20 ms');
SELECT jobq.complete(:job, 1);
CALL jobq.wait('wait later', '20 ms');

-- a job whose limits are reached is no longer one to claim, but a claim has to bury it: it counts
SELECT jobq.enqueue('t', queue => 'wait later') AS job \gset
UPDATE jobq.ready SET tries = 10 WHERE job_id = :job;
CALL jobq.wait('wait later', '20 ms');
SELECT count(*) FROM jobq.claim('wait later');
CALL jobq.wait('wait later', '20 ms');

-- rows that a restore has brought before their jobs do not count
BEGIN;
ALTER TABLE jobq.ready DISABLE TRIGGER ALL;
INSERT INTO jobq.ready (queue_id, tag, job_id, attempt, tries, crashes, priority)
SELECT queue_id, 1, 2^62, 0, 0, 0, 5 FROM jobq.queue WHERE name = 'wait later';
COMMIT;
CALL jobq.wait('wait later', '20 ms');
DELETE FROM jobq.ready WHERE job_id = 2^62;
ALTER TABLE jobq.ready ENABLE TRIGGER ALL;

-- settings of the session: those that a wait changes for itself are as before; so is who one is
SET default_transaction_isolation = 'serializable';
CALL jobq.wait('wait', '0');
CALL jobq.wait('wait later', '20 ms');
SHOW transaction_isolation;
SHOW default_transaction_isolation;
RESET default_transaction_isolation;
SHOW transaction_isolation;
SET default_transaction_read_only = on;
CALL jobq.wait('wait', '0');
RESET default_transaction_read_only;
SET default_transaction_deferrable = on;
CALL jobq.wait('wait later', '20 ms');
RESET default_transaction_deferrable;

-- the other limits of time are for what a wait does while it sleeps, which is nothing
SET statement_timeout = '1 h';
SET lock_timeout = '10 s';
SET idle_in_transaction_session_timeout = '10 ms';
CALL jobq.wait('wait later', '100 ms');
CALL jobq.wait('wait', '1 h');
RESET statement_timeout;
RESET lock_timeout;
RESET idle_in_transaction_session_timeout;

-- a worker waits without any right to the tables, and is itself afterwards; so with an error
CREATE ROLE wait_worker IN ROLE jobq_worker;
CREATE ROLE wait_reader IN ROLE jobq_reader;
CREATE ROLE wait_nobody;
SET ROLE wait_worker;
CALL jobq.wait('wait', '1 h');
SELECT current_user, session_user = current_user AS is_session;
CALL jobq.wait('wait later', '20 ms');
CALL jobq.wait('nowhere', '20 ms');
CALL jobq.wait_any('{wait later,wait}', '1 h');
SELECT current_user;
SELECT count(*) FROM jobq.ready;
DO $$
DECLARE
    ready boolean;
BEGIN
    CALL jobq.wait('wait later', '20 ms', ready);
    RAISE WARNING 'ready: %, role: %', ready, current_user;
    PERFORM FROM jobq.ready;
END
$$;
SELECT current_user;
SET search_path = nowhere;
CALL jobq.wait('wait', '1 h');
SHOW search_path;
RESET search_path;
SET ROLE wait_reader;
CALL jobq.wait('wait', '1 h');
CALL jobq.wait_any('{wait}', '1 h');
SET ROLE wait_nobody;
CALL jobq.wait('wait', '1 h');
SELECT current_user;
RESET ROLE;
DROP ROLE wait_worker, wait_reader, wait_nobody;

-- promise 11: in a session whose plans are made under a hostile search_path; whoever writes a bare name falls in
CREATE SCHEMA wait_evil;
DO $$
DECLARE
    t text;
    op text;
BEGIN
    FOREACH t IN ARRAY ARRAY['bigint', 'int', 'smallint', 'text', 'boolean', 'timestamptz', 'interval', 'oid'] LOOP
        FOREACH op IN ARRAY ARRAY['=', '<', '>=', '+', '-'] LOOP
            EXECUTE format('CREATE FUNCTION wait_evil.%I(%s, %s) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''hijacked''; END $f$', 'op' || op, t, t);
            EXECUTE format('CREATE OPERATOR wait_evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = wait_evil.%I)', op, t, t, 'op' || op);
        END LOOP;
    END LOOP;
    FOREACH t IN ARRAY ARRAY['queue', 'ready', 'job', 'lease', 'finished', 'pg_class', 'pg_extension'] LOOP
        EXECUTE format('CREATE TABLE wait_evil.%I (planted int)', t);
    END LOOP;
END
$$;
\c
\set VERBOSITY terse
SET client_min_messages = warning;
SET search_path = wait_evil, pg_catalog;
SELECT text 'x' = text 'x';
CALL jobq.wait('wait', '1 h');
CALL jobq.wait('wait later', '20 ms');
CALL jobq.wait_any('{wait later,wait}', '1 h');
CALL jobq.wait('nowhere', '0');
CALL jobq.wait('default', '0');
RESET search_path;
DROP SCHEMA wait_evil CASCADE;

-- a queue that is gone is an error, as it is for a claim
SELECT jobq.drop_queue('wait too', true);
CALL jobq.wait('wait too', '0');
CALL jobq.wait_any('{wait,wait too}', '0');

\c :here
DROP DATABASE jobq_wait;
