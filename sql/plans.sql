-- Plans: the price of a claim depends neither on statistics, nor on the caller's planner settings, nor on the backlog.
-- Buffers are counted, not printed: a claim of one job reads fewer than fifty.
-- In a database of its own, for the tables begin empty.
\set VERBOSITY terse
CREATE DATABASE jobq_plans;
\set here :DBNAME
\c jobq_plans
SET client_min_messages = warning;
SET statement_timeout = '2 min';
CREATE EXTENSION jobq;
-- nobody looks at the tables but this file
SELECT format('ALTER TABLE %s SET (autovacuum_enabled = off)', oid::regclass) FROM pg_class
WHERE relnamespace = 'jobq'::regnamespace AND relkind = 'r' ORDER BY relname \gexec

-- the settings of the session that a plan depends on, and some that a careless verb might leave changed
CREATE FUNCTION pg_temp.settings() RETURNS TABLE (name text, setting text)
LANGUAGE sql AS $$
SELECT name, setting FROM pg_settings
WHERE category LIKE 'Query Tuning%' OR name LIKE 'jit%' OR name IN ('work_mem', 'synchronous_commit', 'search_path', 'role', 'session_authorization')
$$;
-- buffers that a statement reads, its planning left out
CREATE FUNCTION pg_temp.buffers(command text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT JSON) ' || command INTO plan;
    RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::bigint;
END
$$;
-- the most of ten times, the first left out: it fills the session's caches
CREATE FUNCTION pg_temp.most(command text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    most bigint := 0;
BEGIN
    PERFORM pg_temp.buffers(command);
    FOR turn IN 1 .. 10 LOOP
        most := greatest(most, pg_temp.buffers(command));
    END LOOP;
    RETURN most;
END
$$;
-- claims from a queue of its own, for dead rows of earlier claims are another matter than plans
CREATE FUNCTION pg_temp.claims_cheaply() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    name text := 'plans ' || (SELECT count(*) FROM jobq.queues WHERE queue LIKE 'plans %');
    one bigint;
    ten bigint;
    hundred bigint;
    of_two bigint;
    none bigint;
BEGIN
    PERFORM jobq.create_queue(name);
    PERFORM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 1000) AS n), name, priority) FROM unnest(ARRAY[7, 3, 9, 0]) AS priorities (priority);
    one := pg_temp.most(format('SELECT * FROM jobq.claim(%L)', name));
    ten := pg_temp.most(format('SELECT * FROM jobq.claim(%L, 10)', name));
    hundred := pg_temp.most(format('SELECT * FROM jobq.claim(%L, 100)', name));
    none := pg_temp.most('SELECT * FROM jobq.claim(''plans empty'')');
    of_two := pg_temp.most(format('SELECT * FROM jobq.claim_from(ARRAY[''plans empty'', %L])', name));
    IF one < 50 AND ten < 50 * 10 AND hundred < 50 * 100 AND of_two < 100 AND none < 50 THEN
        RETURN 'cheap';
    END IF;
    RETURN format('one %s, ten %s, hundred %s, of two %s, none %s', one, ten, hundred, of_two, none);
END
$$;

-- what a sweep pays for one job that is due, and for one whose lease expired
CREATE FUNCTION pg_temp.sweeps_cheaply() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    promotion bigint;
    rescue bigint;
BEGIN
    UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '1 s'
    WHERE job_id IN (SELECT job_id FROM jobq.jobs WHERE queue = 'plans' AND state = 'delayed' ORDER BY job_id DESC LIMIT 11);
    promotion := pg_temp.most('SELECT * FROM jobq.sweep(1)');
    UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s'
    WHERE job_id IN (SELECT job_id FROM jobq.jobs WHERE queue = 'plans' AND state = 'running' ORDER BY job_id DESC LIMIT 11);
    rescue := pg_temp.most('SELECT * FROM jobq.sweep(1)');
    RETURN CASE WHEN promotion < 100 AND rescue < 100 THEN 'cheap' ELSE format('promotion %s, rescue %s', promotion, rescue) END;
END
$$;
-- what the session has set, before its first verb
CREATE TEMP TABLE planner AS SELECT * FROM pg_temp.settings();

-- case 99: plans are made by the statistics of empty tables; then come a history and many jobs, and nobody looks at the tables
SELECT jobq.create_queue('plans', retry_base => '0') AS made;
SELECT jobq.create_queue('plans empty', retry_base => '0') AS made;
SELECT jobq.create_queue('plans history', retry_base => '0') AS made;
ANALYZE jobq.job, jobq.ready, jobq.delayed, jobq.lease, jobq.finished, jobq.key, jobq.failure, jobq.queue;
SELECT count(*) FROM jobq.claim('plans');
SELECT count(*) FROM jobq.sweep();
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 5000) AS n), 'plans history');
SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('plans history', 5000);
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 40000) AS n), 'plans');
SELECT pg_temp.claims_cheaply();
-- case 97: and of mixed priorities
SELECT sum(c) FROM unnest(ARRAY[7, 3, 9, 0]) AS priorities (priority),
     LATERAL (SELECT count(*) AS c FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 10000) AS n), 'plans', priority)) AS batches;
SELECT pg_temp.claims_cheaply();
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 10000) AS n), 'plans', delay => '1 h');
SELECT pg_temp.sweeps_cheaply();
-- statistics of many
ANALYZE jobq.job, jobq.ready, jobq.delayed, jobq.lease, jobq.finished, jobq.key, jobq.failure, jobq.queue;
SELECT pg_temp.claims_cheaply();
SELECT pg_temp.sweeps_cheaply();
DISCARD PLANS;
SELECT pg_temp.claims_cheaply();

-- the caller has what was set, and no say
SELECT name, planner.setting AS before, now.setting AS after FROM planner JOIN pg_temp.settings() AS now USING (name) WHERE now.setting <> planner.setting;
SET plan_cache_mode = force_custom_plan;
SELECT pg_temp.claims_cheaply();
DISCARD PLANS;
SELECT pg_temp.claims_cheaply();
SET plan_cache_mode = force_generic_plan;
DISCARD PLANS;
SELECT pg_temp.claims_cheaply();
RESET plan_cache_mode;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
DISCARD PLANS;
SELECT pg_temp.claims_cheaply();
SELECT pg_temp.sweeps_cheaply();
SET enable_async_append = off;
SET enable_bitmapscan = off;
SET enable_gathermerge = off;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_incremental_sort = off;
SET enable_indexonlyscan = off;
SET enable_indexscan = off;
SET enable_material = off;
SET enable_memoize = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET enable_parallel_append = off;
SET enable_parallel_hash = off;
SET enable_partition_pruning = off;
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_tidscan = off;
SET jit_above_cost = 0;
SET random_page_cost = 1000000;
SET cpu_index_tuple_cost = 1000000;
TRUNCATE planner;
INSERT INTO planner SELECT * FROM pg_temp.settings();
SELECT pg_temp.claims_cheaply();
DISCARD PLANS;
SELECT pg_temp.claims_cheaply();
-- and has what it was set to afterwards, also on the way out by error
SELECT count(*) FROM jobq.claim('plans');
SELECT count(*) FROM jobq.claim('plans missing');
SELECT count(*) FROM jobq.claim('plans', 0);
SELECT jobq.complete_batch('{1}', '{1,2}');
SELECT jobq.enqueue('t', '{"a', 'plans');
SELECT 1 / (count(*) - 1) FROM jobq.claim('plans');
BEGIN;
SAVEPOINT a;
SELECT jobq.enqueue('t', queue => 'plans missing');
ROLLBACK TO a;
SELECT count(*) FROM jobq.sweep();
COMMIT;
SET default_transaction_read_only = on;
\set VERBOSITY sqlstate
SELECT count(*) FROM jobq.claim('plans');
SELECT count(*) FROM jobq.sweep();
\set VERBOSITY terse
RESET default_transaction_read_only;
SELECT name, planner.setting AS before, now.setting AS after FROM planner JOIN pg_temp.settings() AS now USING (name) WHERE now.setting <> planner.setting;
RESET ALL;
SET client_min_messages = warning;
SET statement_timeout = '2 min';

-- case 98: jobs that cannot be claimed are not walked over: future, running, ended, of a paused queue
SELECT jobq.create_queue('plans paused', retry_base => '0') AS made;
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 10000) AS n), 'plans paused');
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 10000) AS n), 'plans empty', delay => '1 h');
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 10000) AS n), 'plans', 0);
SELECT count(*) FROM jobq.claim('plans', 10000);
SELECT jobq.pause_queue('plans paused');
ANALYZE jobq.ready, jobq.delayed, jobq.lease;
SELECT pg_temp.claims_cheaply();
SELECT CASE WHEN most < 50 THEN 'cheap' ELSE most::text END FROM pg_temp.most('SELECT * FROM jobq.claim(''plans paused'')') AS most;

-- the other verbs, each addressed to one row
CREATE FUNCTION pg_temp.cheap(command text, most bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    buffers bigint := pg_temp.most(command);
BEGIN
    RETURN CASE WHEN buffers < most THEN 'cheap' ELSE buffers::text END;
END
$$;
SELECT jobq.create_queue('plans verbs', retry_base => '0') AS made;
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 1000) AS n), 'plans verbs');
SELECT job_id AS job FROM jobq.claim('plans verbs') \gset
SELECT jobq.enqueue('t', queue => 'plans verbs', job_key => 'kept') AS kept \gset
-- case 66: the key is probed, among many
SELECT count(jobq.enqueue('t', queue => 'plans verbs', job_key => 'key ' || n)) FROM generate_series(1, 5000) AS n;
SELECT pg_temp.cheap('SELECT jobq.enqueue(''t'', queue => ''plans verbs'', job_key => ''kept'')', 50) AS keep,
       pg_temp.cheap('SELECT jobq.enqueue(''t'', queue => ''plans verbs'', job_key => ''kept'', job_key_mode => ''replace'')', 100) AS replace,
       pg_temp.cheap('SELECT jobq.enqueue(''t'', queue => ''plans verbs'')', 100) AS enqueue,
       pg_temp.cheap(format('SELECT jobq.renew(%s, 1)', :job), 50) AS renew,
       pg_temp.cheap(format('SELECT jobq.complete(%s, 7)', :job), 50) AS lost,
       pg_temp.cheap(format('SELECT jobq.reschedule(%s, priority => 3)', :kept), 100) AS reschedule,
       pg_temp.cheap(format('SELECT jobq.cancel(%s), jobq.retry(%s)', :kept, :kept), 150) AS cancel_and_retry,
       pg_temp.cheap('SELECT jobq.fail(job_id, attempt, ''e'') FROM jobq.claim(''plans verbs'')', 150) AS fail,
       pg_temp.cheap('SELECT jobq.snooze(job_id, attempt, ''0'') FROM jobq.claim(''plans verbs'')', 150) AS snooze,
       pg_temp.cheap('SELECT jobq.complete(job_id, attempt) FROM jobq.claim(''plans verbs'')', 150) AS complete,
       pg_temp.cheap('SELECT jobq.complete_batch(ARRAY[job_id], ARRAY[attempt]) FROM jobq.claim(''plans verbs'')', 150) AS complete_batch,
       pg_temp.cheap('SELECT jobq.complete_and_claim(ARRAY[job_id], ARRAY[attempt], ''plans verbs'') FROM jobq.claim(''plans verbs'')', 150) AS complete_and_claim;
-- case 93, 94: a sweep with nothing to do reads little, whatever waits, runs or is kept; so does an estimate of the counts
SELECT pg_temp.cheap('SELECT * FROM jobq.sweep()', 100) AS sweep,
       pg_temp.cheap('SELECT * FROM jobq.queue_counts()', 1000) AS queue_counts;

\c :here
DROP DATABASE jobq_plans;
