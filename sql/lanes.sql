-- Lanes: in which order ready jobs are handed out, what groups have of one another, and what an operator sees of it.
\set VERBOSITY terse
SET client_min_messages = warning;
SET jobq.claim_in_transaction = 'allow';

-- makes this many jobs of a group
CREATE FUNCTION pg_temp.put(queue text, group_key text, jobs integer, priority integer DEFAULT 5) RETURNS bigint
LANGUAGE sql AS $$
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, jobs) AS n), queue, priority, group_key => group_key)
$$;
-- claims one job after the other and says whose they were; with a number each, if so wished
CREATE FUNCTION pg_temp.served(queue text, jobs integer, numbered boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    whose text := '';
BEGIN
    FOR turn IN 1 .. jobs LOOP
        whose := whose || ' ' || coalesce((SELECT coalesce(c.group_key, '-') || CASE WHEN numbered THEN c.payload #>> '{}' ELSE '' END
                                           FROM jobq.claim(queue) AS c), 'nobody');
    END LOOP;
    RETURN ltrim(whose);
END
$$;
-- what one claim hands out: how many of each
CREATE FUNCTION pg_temp.shares(queue text, jobs integer) RETURNS text
LANGUAGE sql AS $$
SELECT string_agg(whose || ' ' || c, ', ' ORDER BY whose)
FROM (SELECT coalesce(group_key, '-') AS whose, count(*) AS c FROM jobq.claim(queue, jobs) GROUP BY 1) AS shares
$$;
-- free jobs that claims would miss; also while nobody is at work
CREATE VIEW pg_temp.missed AS
SELECT count(*) FROM jobq.ready AS r JOIN jobq.queue AS q USING (queue_id) JOIN jobq.lanes AS l ON l.queue = q.name AND l.priority = r.priority
WHERE r.tag < l.cursor;

-- priorities first, then tags: each lane to its end before the next
SELECT jobq.create_queue('lanes') AS made;
SELECT pg_temp.put('lanes', 'low', 2, 9), pg_temp.put('lanes', 'high', 2, 0), pg_temp.put('lanes', 'mid', 2), pg_temp.put('lanes', 'high', 1, 0);
SELECT pg_temp.served('lanes', 2, true);
SELECT pg_temp.put('lanes', 'higher', 1, 1);
SELECT group_key, priority, payload FROM jobq.claim('lanes', 4);
SELECT pg_temp.put('lanes', 'high', 1, 0);
SELECT pg_temp.served('lanes', 4, true);
TABLE pg_temp.missed;

-- several queues, in the order given: a queue is not looked at when those before it were enough
SELECT jobq.create_queue('lanes 2') AS made;
SELECT pg_temp.put('lanes', 'first', 2), pg_temp.put('lanes 2', 'second', 3, 0);
SELECT group_key FROM jobq.claim_from('{lanes,lanes 2}', 2);
SELECT state, count(*) FROM jobq.jobs WHERE queue = 'lanes 2' GROUP BY state;
SELECT group_key FROM jobq.claim_from('{lanes,lanes 2}', 2);
SELECT group_key FROM jobq.claim_from('{lanes 2,lanes}', 2);
SELECT count(*) FROM jobq.claim_from('{lanes 2,lanes}', 2);

-- what an operator sees: a queue that nobody used has no lane, one that is read to its end starts behind its last job
SELECT jobq.create_queue('lanes seen') AS made;
SELECT count(*) FROM jobq.lanes WHERE queue = 'lanes seen';
SELECT pg_temp.put('lanes seen', 'g', 2), pg_temp.put('lanes seen', 'h', 1), pg_temp.put('lanes seen', NULL, 1, 7);
SELECT priority, "cursor" <= vtime + 1 AS starts_low, highest - vtime AS ahead, groups, lowerings, found_too_high, transactions
FROM jobq.lanes WHERE queue = 'lanes seen' ORDER BY priority;
BEGIN;
SELECT count(*) FROM jobq.claim('lanes seen', 4);
SELECT priority, transactions FROM jobq.lanes WHERE queue = 'lanes seen' ORDER BY priority;
ROLLBACK;
SELECT priority, lowerings, transactions FROM jobq.lanes WHERE queue = 'lanes seen' ORDER BY priority;
SELECT count(*) FROM jobq.claim('lanes seen', 4);
SELECT count(*) FROM jobq.claim('lanes seen');
SELECT priority, "cursor" - highest AS behind, vtime - highest AS claimed, groups, found_too_high FROM jobq.lanes WHERE queue = 'lanes seen' ORDER BY priority;

-- cases 71 and 73: turns between groups. One with a thousand jobs in front, and others that come later with a few each
SELECT jobq.create_queue('lanes turns') AS made;
SELECT pg_temp.put('lanes turns', 'many', 1000);
SELECT pg_temp.served('lanes turns', 3);
SELECT pg_temp.put('lanes turns', 'a', 3), pg_temp.put('lanes turns', 'b', 2), pg_temp.put('lanes turns', 'c', 1);
SELECT pg_temp.served('lanes turns', 12, true);
-- no group has no other turn than the rest
SELECT pg_temp.put('lanes turns', NULL, 3), pg_temp.put('lanes turns', 'a', 1);
SELECT pg_temp.served('lanes turns', 8, true);
-- a group that was away does not save its turns up
SELECT pg_temp.shares('lanes turns', 100);
SELECT pg_temp.put('lanes turns', 'b', 200);
SELECT pg_temp.shares('lanes turns', 100);
-- case 71: 310 groups with work: in 620 claims each has two
SELECT jobq.create_queue('lanes many') AS made;
SELECT sum(pg_temp.put('lanes many', 'g' || n, 5)) FROM generate_series(1, 310) AS n;
SELECT DISTINCT count(*) FROM jobq.claim('lanes many', 620) GROUP BY group_key;
SELECT min(c), max(c) FROM (SELECT count(*) AS c FROM jobq.claim('lanes many', 400) GROUP BY group_key) AS shares;
TABLE pg_temp.missed;

-- weights: a share, from then on
SELECT jobq.create_queue('lanes weights') AS made;
SELECT jobq.set_group('lanes weights', 'four', 4), jobq.set_group('lanes weights', 'most', 1000);
SELECT pg_temp.put('lanes weights', 'one', 100), pg_temp.put('lanes weights', 'four', 400);
SELECT pg_temp.served('lanes weights', 10);
SELECT pg_temp.shares('lanes weights', 100);
SELECT jobq.set_group('lanes weights', 'four');
SELECT pg_temp.put('lanes weights', 'most', 50);
SELECT pg_temp.shares('lanes weights', 50);
SELECT pg_temp.shares('lanes weights', 50);
SELECT jobq.set_group('lanes weights', 'one', 0);
SELECT jobq.set_group('lanes weights', 'one', 1001);
SELECT jobq.set_group('lanes missing', 'one', 2);
SELECT jobq.set_group('lanes weights', NULL, 2);

-- first in, first out within a group, also without one; who comes back stands behind
SELECT jobq.create_queue('lanes order', retry_base => '0') AS made;
SELECT pg_temp.put('lanes order', NULL, 5);
SELECT jobq.fail(job_id, attempt, 'no') FROM jobq.claim('lanes order');
SELECT jobq.snooze(job_id, attempt, '0') FROM jobq.claim('lanes order');
SELECT pg_temp.put('lanes order', NULL, 1);
SELECT pg_temp.served('lanes order', 6, true);
SELECT pg_temp.put('lanes order', 'g', 4);
SELECT jobq.cancel(job_id, 'no'), jobq.retry(job_id) FROM (SELECT job_id FROM jobq.jobs WHERE queue = 'lanes order' AND state = 'ready' ORDER BY job_id LIMIT 1) AS first;
SELECT jobq.fail(job_id, attempt, 'no') FROM jobq.claim('lanes order');
SELECT pg_temp.served('lanes order', 4, true);
-- one step of promotions keeps the order of run_at, whatever the order of their making
SELECT count(jobq.enqueue('t', to_jsonb(n), 'lanes order', run_at => clock_timestamp() + interval '1 h' - n * interval '1 min', group_key => 'g')) FROM generate_series(1, 4) AS n;
SELECT pg_temp.put('lanes order', 'g', 1);
UPDATE jobq.delayed SET run_at = run_at - interval '2 h' WHERE queue_id = (SELECT queue_id FROM jobq.queue WHERE name = 'lanes order');
SELECT promoted FROM jobq.sweep();
SELECT pg_temp.served('lanes order', 5, true);
-- of another priority: another lane, where its group has a turn of its own
SELECT pg_temp.put('lanes order', 'g', 1), pg_temp.put('lanes order', 'h', 1, 6);
SELECT jobq.reschedule(job_id, priority => 6) FROM jobq.jobs WHERE queue = 'lanes order' AND state = 'ready' AND group_key = 'g';
SELECT pg_temp.served('lanes order', 3);
TABLE pg_temp.missed;

-- a batch that is rolled back has used no turns
SELECT jobq.create_queue('lanes undone') AS made;
SELECT pg_temp.put('lanes undone', 'other', 3), pg_temp.put('lanes undone', 'g', 1);
BEGIN;
SELECT pg_temp.put('lanes undone', 'g', 1000);
ROLLBACK;
SELECT pg_temp.put('lanes undone', 'g', 2);
SELECT pg_temp.served('lanes undone', 7);
-- and has hidden none
SELECT pg_temp.put('lanes undone', 'g', 1);
SELECT pg_temp.served('lanes undone', 2);

-- purge: gone are all, and who comes next is served at once
SELECT pg_temp.put('lanes undone', 'g', 1000), pg_temp.put('lanes undone', 'h', 10, 6);
SELECT jobq.purge_queue('lanes undone');
SELECT pg_temp.put('lanes undone', 'g', 1), pg_temp.put('lanes undone', 'h', 1, 6), pg_temp.put('lanes undone', 'i', 1);
SELECT pg_temp.served('lanes undone', 4);
TABLE pg_temp.missed;
SELECT sum(found_too_high) AS found_too_high, sum(transactions) AS transactions FROM jobq.lanes;
