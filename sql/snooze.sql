-- Snooze: a worker gives a job back for later; it costs no try.
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

-- where a job stands: its line, or its lines if there were (wrongly) more than one; and whether it has its key
CREATE FUNCTION pg_temp.stands(id bigint) RETURNS text
LANGUAGE sql AS $$
SELECT coalesce(string_agg(line, ' AND '), 'nowhere')
       || CASE WHEN EXISTS (SELECT FROM jobq.job WHERE job_id = id) THEN '' ELSE ', no job' END
       || CASE WHEN EXISTS (SELECT FROM jobq.key WHERE job_id = id) THEN ', has the key' ELSE '' END
FROM (SELECT format('delayed, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.delayed WHERE job_id = id
      UNION ALL
      SELECT format('ready, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.ready WHERE job_id = id
      UNION ALL
      SELECT format('running, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.lease WHERE job_id = id
      UNION ALL
      SELECT format('%s, attempt %s, tries %s%s', state, attempt, tries, ', ' || reason) FROM jobq.finished WHERE job_id = id)
     AS lines (line)
$$;

SELECT jobq.create_queue('snooze', max_attempts => 2) AS made;

-- later: the token is spent, the try is given back, and no failure is recorded
SELECT jobq.enqueue('t', '{"n": 1}', 'snooze', 3, group_key => 'group', job_key => 'k') AS job \gset
SELECT attempt, tries FROM jobq.claim('snooze');
SELECT jobq.snooze(:job, 1, '1 h');
SELECT pg_temp.stands(:job), run_at - clock_timestamp() BETWEEN '59 min' AND '1 h' AS later FROM jobq.delayed WHERE job_id = :job;
SELECT count(*) FROM jobq.failure WHERE job_id = :job;
SELECT jobq.snooze(:job, 1, '1 h'), jobq.complete(:job, 1);
UPDATE jobq.delayed SET run_at = clock_timestamp() WHERE job_id = :job;
SELECT promoted FROM jobq.sweep();
SELECT attempt, tries, payload, priority, group_key, last_error FROM jobq.claim('snooze');
-- 0: given back, ready at once
SELECT jobq.snooze(job_id => :job, attempt => 2, delay => '0');
SELECT pg_temp.stands(:job), priority, group_key FROM jobq.ready WHERE job_id = :job;

-- as often as one likes: twenty times with two tries, and then two tries are left
DO $$
BEGIN
    FOR turn IN 1 .. 20 LOOP
        ASSERT (SELECT jobq.snooze(job_id, attempt, '0') FROM jobq.claim('snooze'));
    END LOOP;
END
$$;
SELECT pg_temp.stands(:job);
SELECT attempt, tries FROM jobq.claim('snooze');
SELECT jobq.fail(:job, 23, 'error', '0');
SELECT attempt, tries FROM jobq.claim('snooze');
SELECT jobq.snooze(:job, 24, '0');
SELECT attempt, tries, last_error FROM jobq.claim('snooze');
SELECT jobq.fail(:job, 25, 'error', '0');
SELECT pg_temp.stands(:job);
SELECT attempt, kind FROM jobq.failures WHERE job_id = :job ORDER BY attempt;

-- an orderly end: the count of crashes in a row starts again
SELECT jobq.enqueue('t', queue => 'snooze') AS job \gset
SELECT attempt FROM jobq.claim('snooze');
UPDATE jobq.lease SET crashes = 2 WHERE job_id = :job;
SELECT jobq.snooze(:job, 1, '0');
SELECT pg_temp.stands(:job);

-- promise 3: not held, not snoozed
SELECT jobq.snooze(:job, 1, '0') AS not_running, jobq.snooze(0, 1, '0') AS no_job;
SELECT attempt FROM jobq.claim('snooze');
SELECT jobq.snooze(:job, attempt, '0') FROM unnest(ARRAY[0, 1, 3, -1, 2147483647]) AS attempts (attempt);
SELECT pg_temp.stands(:job);

-- promise 4: expired but not swept, it is still held
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 h' WHERE job_id = :job;
SELECT jobq.snooze(:job, 2, '1 h');
SELECT died, retried FROM jobq.sweep();
SELECT pg_temp.stands(:job);
SELECT jobq.reschedule(:job, clock_timestamp());

-- what is refused leaves the attempt as it was
SELECT attempt FROM jobq.claim('snooze');
\pset format unaligned
\pset tuples_only on
SELECT delay, pg_temp.outcome(format('SELECT jobq.snooze(%s, 3, %s)', :job, delay))
FROM unnest(ARRAY['NULL', '''-1 us''', '''1 mon''', '''1 mon -30 days''', '''-1 day 25 h''', '''178000000 years''', '''2147483647 days''',
                  '''106751991 days''']) AS refused (delay);
\pset format aligned
\pset tuples_only off
SELECT pg_temp.stands(:job);
-- a delay of 27 years is a delay
SELECT jobq.snooze(:job, 3, '10000 days');
SELECT extract(epoch FROM run_at - clock_timestamp()) > 9999 * 86400::numeric AS later FROM jobq.delayed WHERE job_id = :job;
SELECT jobq.cancel(:job);

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^snooze( |$)';
\o
