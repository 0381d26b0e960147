-- Upkeep: what an administrator does to tables and indexes, in a session that has used them before and goes on using them.
-- In a database of its own, for it is left in disorder.
\set VERBOSITY terse
CREATE DATABASE jobq_upkeep;
\set here :DBNAME
\c jobq_upkeep
SET client_min_messages = warning;
CREATE EXTENSION jobq;

-- a life of several jobs: all that a verb writes, in singles and in batches, with payloads of every size
CREATE FUNCTION lives() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    queue_name text := 'upkeep ' || (SELECT count(*) FROM jobq.queues);
    a bigint;
    ids bigint[];
    sums text;
BEGIN
    ASSERT jobq.create_queue(queue_name, retry_base => '0');
    a := jobq.enqueue('t', '{"a": 1}', queue_name, 9, group_key => 'g', job_key => 'k', headers => '{"h": 1}');
    ASSERT a = jobq.enqueue('u', '{"a": 2}', queue_name, 9, job_key => 'k', job_key_mode => 'replace', delay => '1 h');
    ASSERT jobq.reschedule(a, clock_timestamp(), 9);
    SELECT array_agg(job_id ORDER BY turn) INTO ids
    FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(repeat(chr(97 + n % 26), n * n)) FROM generate_series(1, 150) AS n), queue_name)
         WITH ORDINALITY AS b (job_id, turn);
    SELECT string_agg(md5(payload #>> '{}'), '' ORDER BY job_id) INTO sums FROM jobq.claim(queue_name, 150);
    ASSERT sums = (SELECT string_agg(md5(repeat(chr(97 + n % 26), n * n)), '' ORDER BY n) FROM generate_series(1, 150) AS n);
    ASSERT (SELECT count(*) = 150 FROM jobq.renew_batch(ids, array_fill(1, ARRAY[150]), '1 h'));
    ASSERT (SELECT count(*) = 100 FROM jobq.complete_batch(ids[1:100], array_fill(1, ARRAY[100]), (SELECT jsonb_agg(n) FROM generate_series(1, 100) AS n)));
    ASSERT (SELECT bool_and(result = to_jsonb(n)) FROM jobq.history JOIN unnest(ids) WITH ORDINALITY AS i (job_id, n) USING (job_id));
    ASSERT jobq.fail(ids[101], 1, 'error') = 'ready' AND jobq.fail(ids[102], 1, 'error', retry => false) = 'dead' AND jobq.snooze(ids[103], 1, '1 h');
    ASSERT jobq.cancel(ids[104], 'reason') AND jobq.retry(ids[104]) AND jobq.retry_dead(queue_name) = 1;
    UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE job_id = ANY (ids[105:120]);
    UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '1 s' WHERE job_id = ids[103];
    ASSERT (SELECT (promoted, retried, died) = (1, 16, 0) FROM jobq.sweep());
    ASSERT (SELECT count(*) = 21 FROM jobq.complete_and_claim(ids[121:149], array_fill(1, ARRAY[29]), queue_name, 100));
    ASSERT (SELECT (delayed, ready, running, completed, cancelled, dead) = (0, 0, 22, 129, 0, 0) FROM jobq.queue_counts(queue_name, true));
    UPDATE jobq.finished SET prune_at = clock_timestamp() - interval '1 s';
    PERFORM jobq.sweep();
    ASSERT (SELECT count(*) = 22 FROM jobq.job JOIN jobq.queue USING (queue_id) WHERE name = queue_name);
    PERFORM jobq.drop_queue(queue_name, true);
    ASSERT (SELECT count(*) = 0 FROM jobq.job WHERE job_id = ANY (ids || a));
    PERFORM jobq.create_queue(queue_name);
    RETURN 'all well';
END
$$;
CREATE FUNCTION each_table(command text) RETURNS SETOF text
LANGUAGE sql AS $$
SELECT format(command, oid::regclass) FROM pg_class WHERE relnamespace = 'jobq'::regnamespace AND relkind = 'r' ORDER BY relname
$$;
\pset tuples_only on
SELECT lives();
SELECT lives();

-- vacuumed, rewritten, put in order
SELECT each_table('VACUUM (FREEZE, INDEX_CLEANUP on, ANALYZE) %s') \gexec
SELECT lives();
SELECT each_table('VACUUM FULL %s') \gexec
SELECT lives();
CLUSTER jobq.job USING job_pkey;
CLUSTER jobq.ready USING ready_pkey;
SELECT lives();
SELECT each_table('ALTER TABLE %s SET (fillfactor = 50)') \gexec
SELECT lives();

-- indexes built anew, under another oid too
SELECT each_table('REINDEX TABLE %s') \gexec
SELECT lives();
SELECT each_table('REINDEX TABLE CONCURRENTLY %s') \gexec
SELECT lives();

-- indexes of the administrator's own, of other kinds, over expressions and parts, and statistics
CREATE INDEX by_payload ON jobq.job USING gin (payload);
CREATE INDEX by_task ON jobq.job USING hash (task);
CREATE INDEX by_time ON jobq.job USING brin (enqueued_at);
CREATE INDEX by_length ON jobq.job (length(task), (headers ->> 'h')) WHERE priority > 3;
CREATE INDEX by_worker ON jobq.lease (lower(worker)) INCLUDE (expires_at);
CREATE INDEX by_result ON jobq.finished ((result ->> 0), state);
CREATE INDEX by_group ON jobq.ready (group_key);
CREATE STATISTICS task_and_priority ON task, priority FROM jobq.job;
SELECT lives();
SELECT jobq.enqueue('found', '{"find": "me"}', headers => '{"h": "i"}') AS job \gset
SET enable_seqscan = off;
SELECT count(*) FROM jobq.job WHERE payload @> '{"find": "me"}';
SELECT count(*) FROM jobq.job WHERE task = 'found';
SELECT count(*) FROM jobq.job WHERE length(task) = 5 AND headers ->> 'h' = 'i' AND priority > 3;
RESET enable_seqscan;

-- the session thrown back to its beginning, as a pooler does between two clients
DISCARD ALL;
\set VERBOSITY terse
SELECT lives();
DISCARD PLANS;
SELECT lives();

-- a table that is not what this version made is an error that says so, and nothing is lost
ALTER TABLE jobq.ready ADD COLUMN added int;
SELECT jobq.enqueue('t');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM jobq.claim();
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE jobq.ready DROP COLUMN added;
SELECT count(*) FROM jobq.jobs;
-- and with the change undone it works as before
SELECT lives();

-- each index finds each row, and each row is whole
DROP EXTENSION jobq;
CREATE EXTENSION jobq;
SELECT lives();
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(repeat('x', n * 10)) FROM generate_series(1, 500) AS n));
SELECT count(jobq.fail(job_id, attempt, 'error', '1 h')) FROM jobq.claim('default', 100);
SELECT count(jobq.complete(job_id, attempt, payload)) FROM jobq.claim('default', 100);
SELECT count(*) FROM jobq.claim('default', 100);
SELECT count(jobq.enqueue('t', job_key => 'key ' || n)) FROM generate_series(1, 100) AS n;
CREATE EXTENSION amcheck;
SELECT indexrelid::regclass, bt_index_check(indexrelid, true) FROM pg_index JOIN pg_class c ON c.oid = indrelid
WHERE relnamespace = 'jobq'::regnamespace ORDER BY indexrelid::regclass::text;
SELECT relname, v.* FROM pg_class, LATERAL verify_heapam(oid) AS v WHERE relnamespace = 'jobq'::regnamespace AND relkind = 'r';
\c :here
DROP DATABASE jobq_upkeep;

-- rows are written past triggers and foreign keys, so a table that has one is refused, not half obeyed
SELECT jobq.create_queue('upkeep') AS made;
SELECT jobq.enqueue('t', queue => 'upkeep') IS NOT NULL AS enqueued;
\set VERBOSITY default
CREATE TABLE refers (job_id bigint REFERENCES jobq.job ON DELETE CASCADE);
SELECT jobq.enqueue('t');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM jobq.claim('upkeep');
\echo :LAST_ERROR_SQLSTATE
DROP TABLE refers;
CREATE TRIGGER planted BEFORE INSERT ON jobq.ready FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
SELECT jobq.enqueue('t');
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY terse
DROP TRIGGER planted ON jobq.ready;
SELECT jobq.enqueue('t') IS NOT NULL AS enqueued;
SELECT jobq.drop_queue('upkeep', true);
