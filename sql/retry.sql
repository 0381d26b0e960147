-- Retry: an operator gives a dead or cancelled job another life, under the same id.
\set VERBOSITY terse
SET client_min_messages = warning;

-- what a statement ends with: its SQLSTATE, message and hint, numbers of jobs hidden, or "accepted"
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
    RETURN state || ' ' || regexp_replace(message, 'job \d+', 'job N') || coalesce(' [' || nullif(hint, '') || ']', '');
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

SELECT jobq.create_queue('retry', max_attempts => 2, max_crashes => 2, retry_base => '0') AS made;

-- case 56: a dead job lives again: the id and the attempts go on, tries and crashes start at 0, failures stay
SELECT jobq.enqueue('t', '{"n": 1}', 'retry', 3, group_key => 'group', job_key => 'k', headers => '{"h": 1}') AS job \gset
SELECT jobq.fail(job_id, attempt, 'first') FROM jobq.claim('retry');
SELECT jobq.fail(job_id, attempt, 'second') FROM jobq.claim('retry');
SELECT pg_temp.stands(:job);
SELECT jobq.retry(:job);
SELECT pg_temp.stands(:job);
SELECT count(*) FROM jobq.history WHERE job_id = :job;
SELECT job_id = :job AS job, attempt, task, payload, group_key, headers, tries, max_attempts, crashes, priority, last_error FROM jobq.claim('retry');
-- promise 3: the first life's tokens are spent
SELECT jobq.complete(:job, 1), jobq.complete(:job, 2);
SELECT jobq.fail(:job, 3, 'third');
SELECT jobq.fail(job_id, attempt, 'fourth') FROM jobq.claim('retry');
SELECT pg_temp.stands(:job);
SELECT attempt, error FROM jobq.failures WHERE job_id = :job ORDER BY attempt;

-- after death by crashes too: it may crash as often again
SELECT jobq.enqueue('t', queue => 'retry', max_attempts => 10) AS job \gset
SELECT attempt FROM jobq.claim('retry');
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s', crashes = 1 WHERE job_id = :job;
SELECT died FROM jobq.sweep();
SELECT pg_temp.stands(:job);
SELECT jobq.retry(:job);
SELECT attempt, tries, crashes FROM jobq.claim('retry');
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE job_id = :job;
SELECT retried FROM jobq.sweep();
SELECT pg_temp.stands(:job);

-- a cancelled one, waiting or running
SELECT jobq.cancel(:job), jobq.retry(:job), pg_temp.stands(:job);
SELECT attempt FROM jobq.claim('retry');
SELECT jobq.cancel(:job), jobq.retry(:job), pg_temp.stands(:job);
SELECT attempt FROM jobq.claim('retry');
SELECT jobq.complete(:job, 4);

-- what completed, lives, or never was is not retried
SELECT jobq.retry(:job) AS completed, jobq.retry(0) AS no_job, jobq.retry(-1) AS negative;
SELECT pg_temp.stands(:job);
SELECT jobq.enqueue('t', queue => 'retry', delay => '1 h') AS job \gset
SELECT jobq.retry(:job, clock_timestamp()) AS delayed, pg_temp.stands(:job);
SELECT jobq.reschedule(:job, clock_timestamp());
SELECT jobq.retry(:job) AS ready, pg_temp.stands(:job);
SELECT attempt FROM jobq.claim('retry');
SELECT jobq.retry(:job) AS running, pg_temp.stands(:job);
SELECT jobq.fail(:job, 1, 'error', retry => false);

-- at a time: in the future it waits, in the past it is ready
SELECT jobq.retry(:job, clock_timestamp() + interval '1 h');
SELECT pg_temp.stands(:job), run_at - clock_timestamp() BETWEEN '59 min' AND '1 h' AS at_its_time FROM jobq.delayed WHERE job_id = :job;
SELECT jobq.cancel(:job), jobq.retry(job_id => :job, run_at => '2000-01-01');
SELECT pg_temp.stands(:job);
SELECT jobq.cancel(:job), jobq.retry(:job, NULL), pg_temp.stands(:job);
SELECT jobq.cancel(:job);
\pset format unaligned
\pset tuples_only on
SELECT run_at, pg_temp.outcome(format('SELECT jobq.retry(%s, %L)', :job, run_at)), pg_temp.stands(:job)
FROM unnest(ARRAY['infinity', '-infinity']) AS refused (run_at);
SELECT pg_temp.outcome('SELECT jobq.retry(NULL)');
\pset format aligned
\pset tuples_only off

-- its key: taken again with the job, or held by another: an error that names that one, and nothing changes
SELECT jobq.enqueue('t', queue => 'retry', job_key => 'key') AS dead \gset
SELECT jobq.fail(job_id, attempt, 'error', retry => false) FROM jobq.claim('retry');
SELECT jobq.retry(:dead), pg_temp.stands(:dead);
SELECT jobq.enqueue('t', queue => 'retry', job_key => 'key') = :dead AS kept;
SELECT jobq.fail(job_id, attempt, 'error', retry => false) FROM jobq.claim('retry');
SELECT jobq.enqueue('t', queue => 'retry', job_key => 'key') AS holder \gset
SELECT pg_temp.outcome(format('SELECT jobq.retry(%s)', :dead));
CREATE TEMP TABLE refused AS SELECT :dead AS dead, :holder AS holder;
DO $$
DECLARE
    message text;
BEGIN
    PERFORM jobq.retry(dead) FROM refused;
EXCEPTION WHEN unique_violation THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
    ASSERT message ~ ('\m' || (SELECT holder FROM refused) || '\M'), message;
END
$$;
SELECT pg_temp.stands(:dead) AS dead, pg_temp.stands(:holder) AS holder;
SELECT jobq.cancel(:holder), jobq.retry(:dead), pg_temp.stands(:dead), pg_temp.stands(:holder);
SELECT jobq.cancel(:dead);

-- a job that was replaced while it ran
SELECT jobq.enqueue('t', queue => 'retry', job_key => 'key') AS old \gset
SELECT attempt FROM jobq.claim('retry');
SELECT jobq.enqueue('t', queue => 'retry', job_key => 'key', job_key_mode => 'replace') AS new \gset
SELECT jobq.fail(:old, 1, 'error');
SELECT pg_temp.outcome(format('SELECT jobq.retry(%s)', :old));
SELECT jobq.cancel(:new), jobq.retry(:old), pg_temp.stands(:old);
SELECT jobq.fail(job_id, attempt, 'error', '0') FROM jobq.claim('retry');
SELECT pg_temp.stands(:old);
SELECT jobq.cancel(:old);

-- retry_dead: the dead of a queue, not the cancelled, and no more than asked
SELECT jobq.create_queue('retry dead', retry_base => '0', max_attempts => 1) AS made;
SELECT count(*) FROM jobq.enqueue_batch('dies', '[1, 2, 3, 4, 5]', 'retry dead');
SELECT payload, jobq.fail(job_id, attempt, 'error') FROM jobq.claim('retry dead', 5);
SELECT jobq.enqueue('cancelled', queue => 'retry dead') AS cancelled \gset
SELECT jobq.cancel(:cancelled);
SELECT jobq.enqueue('completed', queue => 'retry dead') AS completed \gset
SELECT jobq.complete(job_id, attempt) FROM jobq.claim('retry dead');
SELECT jobq.retry_dead('retry dead', 2);
SELECT ready, dead, cancelled, completed FROM jobq.queue_counts('retry dead', true);
SELECT payload, attempt, tries FROM jobq.claim('retry dead', 10);
SELECT jobq.retry_dead('retry dead');
SELECT jobq.retry_dead(queue => 'retry dead', max_jobs => NULL);
SELECT payload, attempt, tries FROM jobq.claim('retry dead', 10);
SELECT ready, dead, cancelled, completed FROM jobq.queue_counts('retry dead', true);

-- promise 6: one whose key is held by another stays dead, and stops nobody
SELECT jobq.create_queue('retry keys', max_attempts => 1) AS made;
SELECT count(jobq.enqueue('dies', to_jsonb(n), 'retry keys', job_key => 'key ' || n)) FROM generate_series(1, 4) AS n;
SELECT count(jobq.fail(job_id, attempt, 'error')) FROM jobq.claim('retry keys', 10);
SELECT jobq.enqueue('holds', queue => 'retry keys', job_key => 'key 2') IS NOT NULL AS enqueued;
-- two dead ones of one key: one of them comes back
SELECT jobq.enqueue('dies', '5', 'retry keys', 0, job_key => 'key 4') IS NOT NULL AS enqueued;
SELECT jobq.fail(job_id, attempt, 'error') FROM jobq.claim('retry keys');
SELECT jobq.retry_dead('retry keys');
SELECT job_key, count(*), count(DISTINCT job_id) FROM jobq.jobs WHERE queue = 'retry keys' GROUP BY 1 ORDER BY 1;
SELECT dead FROM jobq.queue_counts('retry keys', true);
SELECT jobq.retry_dead('retry keys');

\pset format unaligned
\pset tuples_only on
SELECT call, pg_temp.outcome(call)
FROM (VALUES
    ('SELECT jobq.retry_dead(NULL)'),
    ('SELECT jobq.retry_dead(''retry dead'', 0)'),
    ('SELECT jobq.retry_dead(''retry dead'', -1)'),
    ('SELECT jobq.retry_dead(''retry dead'', 1)'),
    ('SELECT jobq.retry_dead(''retry dead'', 2147483647)')) AS calls (call);

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^retry( |$)';
\o
