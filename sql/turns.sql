-- Groups' turns, by the tags that producers are given: a session keeps the weights that it has read, and still sees what there is.
\set VERBOSITY terse
-- how far apart two jobs of a group stand that are enqueued together; they are taken back
CREATE FUNCTION stride(queue text, group_key text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    jobs bigint[];
    stride bigint;
BEGIN
    jobs := ARRAY(SELECT jobq.enqueue_batch('t', '[1, 2]', queue, group_key => stride.group_key));
    SELECT max(tag) - min(tag) INTO stride FROM jobq.ready WHERE job_id = ANY (jobs);
    RAISE SQLSTATE 'UNDO0';
EXCEPTION WHEN SQLSTATE 'UNDO0' THEN
    RETURN stride;
END
$$;
CREATE FUNCTION strides(queue_name text, keys text[] DEFAULT '{ten,two,NULL}') RETURNS text
LANGUAGE plpgsql AS $$ BEGIN RETURN string_agg(stride(queue_name, key)::text, ' ' ORDER BY n) FROM unnest(keys) WITH ORDINALITY AS k (key, n); END $$;
-- how often the weights were looked up; a server that discards all that sessions keep is no measure
CREATE FUNCTION looks() RETURNS bigint
LANGUAGE sql AS $$ SELECT pg_stat_get_xact_numscans('jobq.group_weight_pkey'::regclass) WHERE current_setting('debug_discard_caches') = '0' $$;

SELECT jobq.create_queue('turns'), jobq.create_queue('turns unweighted');

-- the stride is 1000 / weight, and 1000 without one
SELECT strides('turns');
SELECT jobq.set_group('turns', 'ten', 10), jobq.set_group('turns', 'two', 2);
SELECT strides('turns'), strides('turns unweighted'), strides('turns', '{Ten,ten ,NULL,""}') AS others;
SELECT jobq.set_group('turns', 'ten', 3), jobq.set_group('turns', 'two', 1000);
SELECT strides('turns');

-- a queue's weights are read once, also if there are none, and whether its groups have one or not
BEGIN;
SELECT coalesce(looks(), 0) AS before \gset
SELECT strides('turns', '{ten,none,two,none}'), strides('turns unweighted', '{ten,none}') FROM generate_series(1, 3);
SELECT coalesce(looks() - :before <= 1, true) AS few_looks;
ROLLBACK;
SELECT jobq.set_group('turns unweighted', 'new', 4);
BEGIN;
SELECT coalesce(looks(), 0) AS before \gset
SELECT strides('turns', '{ten,none,two,none}'), strides('turns unweighted', '{new,none}') FROM generate_series(1, 3);
SELECT coalesce(looks() - :before <= 2, true) AS few_looks;
ROLLBACK;

-- a change counts at once for who made it, also within a statement, and goes with its transaction or savepoint
BEGIN;
SELECT jobq.set_group('turns', 'ten', 5), strides('turns');
SAVEPOINT a;
SELECT jobq.set_group('turns', 'ten', 8);
SELECT jobq.set_group('turns', 'two');
SELECT strides('turns');
ROLLBACK TO a;
SELECT strides('turns');
ROLLBACK;
SELECT strides('turns');
DO $$
BEGIN
    PERFORM jobq.set_group('turns', 'ten', 20);
    ASSERT stride('turns', 'ten') = 50;
    PERFORM jobq.set_group('turns', 'ten', 10);
    ASSERT stride('turns', 'ten') = 100;
    RAISE SQLSTATE 'UNDO0';
EXCEPTION WHEN SQLSTATE 'UNDO0' THEN
    ASSERT stride('turns', 'ten') = 333;
END
$$;

-- the table changed by hand, or emptied
INSERT INTO jobq.group_weight SELECT queue_id, 'by hand', 50 FROM jobq.queue WHERE name = 'turns';
SELECT stride('turns', 'by hand');
SET session_replication_role = replica;
DELETE FROM jobq.group_weight WHERE group_key = 'by hand';
RESET session_replication_role;
SELECT stride('turns', 'by hand');
BEGIN;
TRUNCATE jobq.group_weight;
SELECT strides('turns');
ROLLBACK;
SELECT strides('turns');

-- what one old snapshot shows is not kept
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT strides('turns');
SELECT jobq.set_group('turns', 'ten', 40);
SELECT strides('turns');
ROLLBACK;
SELECT strides('turns');

-- more weights than a session keeps are right all the same, and those of other queues too
SELECT jobq.create_queue('turns many');
SELECT count(jobq.set_group('turns many', 'group ' || n, 1 + n % 1000)) FROM generate_series(1, 2500) AS n;
SELECT count(*) FROM jobq.group_weight JOIN jobq.queue USING (queue_id) WHERE name LIKE 'turns%';
SELECT count(*) FROM generate_series(1, 2500) AS n WHERE stride('turns many', 'group ' || n) <> 1000 / (1 + n % 1000);
SELECT strides('turns'), stride('turns many', 'none');
BEGIN;
SELECT coalesce(looks(), 0) AS before \gset
SELECT strides('turns'), strides('turns unweighted') FROM generate_series(1, 3);
SELECT coalesce(looks() - :before <= 1, true) AS few_looks;
ROLLBACK;

-- with its queue they go
SELECT jobq.drop_queue('turns many'), jobq.drop_queue('turns'), jobq.drop_queue('turns unweighted');
SELECT count(*) FROM jobq.group_weight WHERE queue_id NOT IN (SELECT queue_id FROM jobq.queue);
DROP FUNCTION strides, stride, looks;
