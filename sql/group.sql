-- Groups: set_group gives one its share of a queue. What comes of it: turns.
\set VERBOSITY terse
SET client_min_messages = warning;

-- what a statement ends with: its SQLSTATE, message and hint, or "accepted"
CREATE FUNCTION pg_temp.outcome(command text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    state text;
    message text;
    hint text;
BEGIN
    EXECUTE command;
    RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
    RETURN state || ' ' || message || coalesce(' [' || nullif(hint, '') || ']', '');
END
$$;
CREATE TEMP VIEW weights AS
SELECT name, left(group_key, 20) AS group_key, weight
FROM jobq.group_weight LEFT JOIN jobq.queue USING (queue_id) WHERE name ~ '^group( |$)' OR name IS NULL ORDER BY name, group_key COLLATE "C";

SELECT jobq.create_queue('group'), jobq.create_queue('group other');

-- what is refused, and with which word
\pset format unaligned
\pset tuples_only on
SELECT call, pg_temp.outcome(format('SELECT jobq.set_group(%s)', call))
FROM (VALUES
    ('NULL, ''a'', 2'),
    ('''group'', NULL, 2'),
    ('''group'', ''a'', 0'),
    ('''group'', ''a'', -1'),
    ('''group'', ''a'', 1001'),
    ('''group'', ''a'', 2147483647'),
    ('''group'', repeat(''x'', 256), 2'),
    ('''group'', repeat(''ä'', 128), 2'),
    ('''group missing'', ''a'', 2'),
    ('''group missing'', ''a'''),
    ('''sql/10'', ''a'', 2'),
    (''''', ''a'', 2')) AS calls (call);
\pset format aligned
\pset tuples_only off
SELECT count(*) FROM weights;

-- what is taken: any key, 1 to 1000; without a weight, or with NULL, the one that all have
SELECT jobq.set_group('group', 'a', 1000), jobq.set_group('group', 'b', 2), jobq.set_group('group', '', 3), jobq.set_group('group', repeat('x', 255), 4),
       jobq.set_group(weight => 5, group_key => '''"\%s', queue => 'group'), jobq.set_group('group other', 'a', 6);
TABLE weights;
SELECT jobq.set_group('group', 'a', 10), jobq.set_group('group', 'b', 1), jobq.set_group('group', '', NULL), jobq.set_group('group', repeat('x', 255));
TABLE weights;
-- the weight that all have needs no row
SELECT jobq.set_group('group', 'new'), jobq.set_group('group', 'b');
TABLE weights;
-- the last one counts, also within a statement; what is rolled back does not
SELECT count(jobq.set_group('group', 'a', n)) FROM generate_series(2, 20) AS n;
BEGIN;
SELECT jobq.set_group('group', 'a', 30);
SAVEPOINT a;
SELECT jobq.set_group('group', 'a');
ROLLBACK TO a;
TABLE weights;
ROLLBACK;
TABLE weights;

-- the queue's jobs may come and go, purged or paused: the weights stay
SELECT jobq.enqueue('t', queue => 'group', group_key => 'a') IS NOT NULL AS enqueued;
SELECT jobq.purge_queue('group');
SELECT jobq.alter_queue('group', max_attempts => 3), jobq.pause_queue('group'), jobq.set_group('group', 'paused', 7);
TABLE weights;
-- with the queue they go, and a new one of that name has none
SELECT jobq.drop_queue('group');
TABLE weights;
SELECT jobq.create_queue('group');
SELECT jobq.set_group('group', 'b', 9);
TABLE weights;

-- nothing is left for other files
SELECT jobq.drop_queue('group'), jobq.drop_queue('group other');
TABLE weights;
