-- Reschedule: an operator moves a waiting job in time or in priority.
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

-- where a job stands: its line, or its lines if there were (wrongly) more than one; and its priority there
CREATE FUNCTION pg_temp.stands(id bigint) RETURNS text
LANGUAGE sql AS $$
SELECT coalesce(string_agg(line, ' AND '), 'nowhere')
       || coalesce((SELECT ', priority ' || priority FROM jobq.job WHERE job_id = id), ', no job')
FROM (SELECT format('delayed, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.delayed WHERE job_id = id
      UNION ALL
      SELECT format('ready at %s, attempt %s, tries %s, crashes %s', priority, attempt, tries, crashes) FROM jobq.ready WHERE job_id = id
      UNION ALL
      SELECT format('running, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.lease WHERE job_id = id
      UNION ALL
      SELECT format('%s, attempt %s, tries %s%s', state, attempt, tries, ', ' || reason) FROM jobq.finished WHERE job_id = id)
     AS lines (line)
$$;

SELECT jobq.create_queue('reschedule') AS made;

-- in time: put off, put forward; counters and group stay
SELECT jobq.enqueue('t', queue => 'reschedule', group_key => 'group', job_key => 'k') AS job \gset
SELECT jobq.fail(job_id, attempt, 'error', '0') FROM jobq.claim('reschedule');
UPDATE jobq.ready SET crashes = 1 WHERE job_id = :job;
SELECT jobq.reschedule(:job, clock_timestamp() + interval '1 h');
SELECT pg_temp.stands(:job), run_at - clock_timestamp() BETWEEN '59 min' AND '1 h' AS at_its_time FROM jobq.delayed WHERE job_id = :job;
SELECT count(*) FROM jobq.claim('reschedule');
SELECT jobq.reschedule(:job, run_at => '2099-01-01');
SELECT pg_temp.stands(:job), run_at = '2099-01-01' AS at_its_time FROM jobq.delayed WHERE job_id = :job;
SELECT jobq.reschedule(:job, clock_timestamp());
SELECT pg_temp.stands(:job), group_key FROM jobq.ready WHERE job_id = :job;
SELECT jobq.reschedule(:job, '2000-01-01');
SELECT pg_temp.stands(:job);
SELECT count(*) FROM jobq.key WHERE job_id = :job;

-- in priority: at once if it is ready, at its promotion if it is not; its time stays
SELECT jobq.reschedule(:job, priority => 0);
SELECT pg_temp.stands(:job);
SELECT jobq.reschedule(:job, NULL, 9);
SELECT pg_temp.stands(:job);
SELECT jobq.reschedule(:job, '2099-01-01', 4);
SELECT pg_temp.stands(:job);
SELECT jobq.reschedule(job_id => :job, priority => 2);
SELECT pg_temp.stands(:job), run_at = '2099-01-01' AS at_its_time FROM jobq.delayed WHERE job_id = :job;
UPDATE jobq.delayed SET run_at = clock_timestamp() WHERE job_id = :job;
SELECT promoted FROM jobq.sweep();
SELECT pg_temp.stands(:job);

-- the order of a claim follows
SELECT jobq.enqueue('other', queue => 'reschedule', priority => 2) AS other \gset
SELECT jobq.enqueue('last', queue => 'reschedule', priority => 2) AS last \gset
SELECT jobq.reschedule(:last, priority => 1);
SELECT task, priority, attempt, tries, crashes FROM jobq.claim('reschedule', 3);

-- not while it runs, nor when it has ended, nor what never was
SELECT jobq.reschedule(:job, '2099-01-01') AS running, jobq.reschedule(:job, priority => 0) AS running_too;
SELECT pg_temp.stands(:job);
SELECT jobq.complete(:job, 2), jobq.cancel(:other), jobq.fail(:last, 1, 'error', retry => false);
SELECT jobq.reschedule(:job, '2099-01-01') AS completed, jobq.reschedule(:other, priority => 1) AS cancelled,
       jobq.reschedule(:last, '2099-01-01', 1) AS dead, jobq.reschedule(0, '2099-01-01') AS no_job;
SELECT pg_temp.stands(:job) AS job, pg_temp.stands(:other) AS other, pg_temp.stands(:last) AS last;

-- bad values; the job stays where it was
SELECT jobq.enqueue('t', queue => 'reschedule', run_at => '2099-01-01') AS job \gset
\pset format unaligned
\pset tuples_only on
SELECT arguments, pg_temp.outcome(format('SELECT jobq.reschedule(%s, %s)', :job, arguments))
FROM unnest(ARRAY['NULL', 'NULL, NULL', '''infinity''', '''-infinity''', 'priority => -1', 'priority => 10', 'priority => 2147483647',
                  '''2050-01-01'', 10', '''infinity'', 1']) AS refused (arguments);
SELECT pg_temp.outcome('SELECT jobq.reschedule(NULL, ''2050-01-01'')');
SELECT pg_temp.outcome('SELECT jobq.reschedule(1)');
SELECT pg_temp.outcome('SELECT jobq.reschedule(0, priority => 10)');
\pset format aligned
\pset tuples_only off
SELECT pg_temp.stands(:job), run_at = '2099-01-01' AS at_its_time FROM jobq.delayed WHERE job_id = :job;
SELECT jobq.cancel(:job);

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^reschedule( |$)';
\o
