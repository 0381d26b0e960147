-- Fail: an attempt that did not complete is recorded; the job tries again later, or dies with its reason.
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

-- where a job stands: its line, or its lines if there were (wrongly) more than one
CREATE FUNCTION pg_temp.stands(id bigint) RETURNS text
LANGUAGE sql AS $$
SELECT coalesce(string_agg(line, ' AND '), 'nowhere')
       || CASE WHEN EXISTS (SELECT FROM jobq.job WHERE job_id = id) THEN '' ELSE ', no job' END
FROM (SELECT format('delayed, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.delayed WHERE job_id = id
      UNION ALL
      SELECT format('ready, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.ready WHERE job_id = id
      UNION ALL
      SELECT format('running, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.lease WHERE job_id = id
      UNION ALL
      SELECT format('%s, attempt %s, tries %s%s', state, attempt, tries, ', ' || reason) FROM jobq.finished WHERE job_id = id)
     AS lines (line)
$$;

SELECT jobq.create_queue('fail', max_attempts => 3, retry_base => '5 s', retry_cap => '1 h') AS made;

-- a job fails until its attempts are exhausted; each failure is recorded
SELECT jobq.enqueue('t', queue => 'fail') AS job \gset
SELECT attempt FROM jobq.claim('fail', worker => 'first');
SELECT claimed_at AS claimed FROM jobq.lease WHERE job_id = :job \gset
SELECT jobq.fail(:job, 1, 'first error');
SELECT pg_temp.stands(:job), run_at - failed_at BETWEEN '5 s' AND '5.5 s' AS back_off
FROM jobq.delayed JOIN jobq.failure USING (job_id) WHERE job_id = :job;
SELECT attempt, kind, error, worker, claimed_at = :'claimed' AS claimed_at, failed_at BETWEEN claimed_at AND clock_timestamp() AS failed_at
FROM jobq.failures WHERE job_id = :job;
UPDATE jobq.delayed SET run_at = clock_timestamp() WHERE job_id = :job;
SELECT promoted FROM jobq.sweep();
SELECT attempt, tries, last_error FROM jobq.claim('fail');
SELECT jobq.fail(:job, 2, 'second error', '0');
SELECT pg_temp.stands(:job);
SELECT attempt, tries, last_error FROM jobq.claim('fail');
SELECT jobq.fail(:job, 3, 'third error', '0');
SELECT pg_temp.stands(:job);
SELECT state, reason, attempt, tries, ended_at >= claimed_at AS times FROM jobq.history WHERE job_id = :job;
SELECT attempt, kind, error FROM jobq.failures WHERE job_id = :job ORDER BY attempt;
SELECT prune_at - ended_at AS kept FROM jobq.finished WHERE job_id = :job;

-- promise 3: a late or wrong word changes nothing and records nothing
SELECT jobq.fail(:job, 3, 'again'), jobq.fail(:job, 4, 'never was'), jobq.fail(0, 1, 'nobody'), jobq.fail(-1, -1, 'nobody');
SELECT jobq.enqueue('t', queue => 'fail') AS job \gset
SELECT jobq.fail(:job, 0, 'not claimed'), jobq.fail(:job, 1, 'not claimed');
SELECT attempt FROM jobq.claim('fail');
SELECT jobq.fail(:job, 0, 'wrong'), jobq.fail(:job, 2, 'wrong'), jobq.fail(:job, -1, 'wrong');
SELECT pg_temp.stands(:job), (SELECT count(*) FROM jobq.failure WHERE job_id = :job) AS failures;

-- not to be retried: dead at once
SELECT jobq.fail(:job, 1, 'for good', retry => false);
SELECT pg_temp.stands(:job), (SELECT error FROM jobq.failures WHERE job_id = :job) AS error;
SELECT jobq.enqueue('t', queue => 'fail') AS job \gset
SELECT attempt FROM jobq.claim('fail');
SELECT jobq.fail(:job, 1, 'for good', '1 s', false);
SELECT pg_temp.stands(:job);

-- NULL means the default: the queue's back-off, another try
SELECT jobq.enqueue('t', queue => 'fail') AS job \gset
SELECT attempt FROM jobq.claim('fail');
SELECT jobq.fail(:job, 1, 'error', NULL, NULL);
SELECT pg_temp.stands(:job);
SELECT jobq.cancel(:job);

-- a time of one's own is neither capped nor spread
SELECT jobq.enqueue('t', queue => 'fail') AS job \gset
SELECT attempt FROM jobq.claim('fail');
SELECT jobq.fail(job_id => :job, attempt => 1, error => '', retry_in => '10 days', retry => true);
SELECT pg_temp.stands(:job), run_at - failed_at = '10 days' AS retry_in, error = '' AS error
FROM jobq.delayed JOIN jobq.failure USING (job_id) WHERE job_id = :job;
SELECT jobq.cancel(:job);

-- the job's own limit goes before the queue's; the queue's is looked at when the attempt fails
SELECT jobq.enqueue('t', queue => 'fail', max_attempts => 1) AS job \gset
SELECT max_attempts FROM jobq.claim('fail');
SELECT jobq.fail(:job, 1, 'error', '0');
SELECT jobq.enqueue('t', queue => 'fail', max_attempts => 4) AS job \gset
SELECT max_attempts FROM jobq.claim('fail');
UPDATE jobq.lease SET tries = 3 WHERE job_id = :job;
SELECT jobq.fail(:job, 1, 'error', '0');
SELECT jobq.cancel(:job);
SELECT jobq.enqueue('t', queue => 'fail') AS job \gset
SELECT max_attempts FROM jobq.claim('fail');
SELECT jobq.alter_queue('fail', max_attempts => 1);
SELECT jobq.fail(:job, 1, 'error', '0');
SELECT pg_temp.stands(:job);
SELECT jobq.alter_queue('fail', max_attempts => 3);

-- a failure is an orderly end: the count of crashes in a row starts again
SELECT jobq.enqueue('t', queue => 'fail', max_attempts => 100) AS job \gset
SELECT attempt FROM jobq.claim('fail');
UPDATE jobq.lease SET crashes = 2 WHERE job_id = :job;
SELECT jobq.fail(:job, 1, 'error');
SELECT pg_temp.stands(:job);
SELECT jobq.cancel(:job);

-- case 157: back-off is least(cap, base * 2^(tries - 1)) and up to a tenth more, at any number of tries
CREATE TEMP TABLE back_off (base interval, cap interval, tries int, least interval);
INSERT INTO back_off VALUES
    ('5 s', '1 h', 1, '5 s'), ('5 s', '1 h', 2, '10 s'), ('5 s', '1 h', 3, '20 s'), ('5 s', '1 h', 10, '2560 s'), ('5 s', '1 h', 11, '1 h'),
    ('5 s', '1 h', 31, '1 h'), ('5 s', '1 h', 32, '1 h'), ('5 s', '1 h', 33, '1 h'), ('5 s', '1 h', 63, '1 h'), ('5 s', '1 h', 64, '1 h'),
    ('5 s', '1 h', 65, '1 h'), ('5 s', '1 h', 10000, '1 h'), ('5 s', '1 h', 2147483645, '1 h'),
    ('1 us', '365000 days', 32, '2147.483648 s'), ('1 us', '365000 days', 45, '17592186.044416 s'), ('1 us', '365000 days', 64, '365000 days'),
    ('1 day', '365000 days', 30, '365000 days'), ('1 day', '20 days', 5, '16 days'), ('2 h', '1 h', 1, '1 h'), ('2 h', '1 h', 40, '1 h');
CREATE FUNCTION pg_temp.backs_off(b back_off) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    job bigint;
    word text;
    wait interval;
BEGIN
    PERFORM jobq.alter_queue('fail', retry_base => b.base, retry_cap => b.cap);
    job := jobq.enqueue('t', queue => 'fail', max_attempts => 2147483647);
    PERFORM jobq.claim('fail');
    UPDATE jobq.lease SET tries = b.tries WHERE job_id = job;
    word := jobq.fail(job, 1, 'error');
    SELECT run_at - failed_at INTO wait FROM jobq.delayed JOIN jobq.failure USING (job_id) WHERE job_id = job;
    PERFORM jobq.cancel(job);
    RETURN word || CASE WHEN extract(epoch FROM wait) BETWEEN extract(epoch FROM b.least) AND extract(epoch FROM b.least) * 1.1 THEN '' ELSE ' after ' || wait END;
END
$$;
SELECT base, cap, tries, pg_temp.backs_off(back_off) FROM back_off;
-- no wait: ready at once, at any number of tries
SELECT jobq.alter_queue('fail', retry_base => '0', retry_cap => '1 h');
SELECT jobq.enqueue('t', queue => 'fail', max_attempts => 2147483647) AS job \gset
SELECT attempt FROM jobq.claim('fail');
UPDATE jobq.lease SET tries = 1000000000 WHERE job_id = :job;
SELECT jobq.fail(:job, 1, 'error');
SELECT jobq.alter_queue('fail', retry_base => '5 s', retry_cap => '0');
SELECT attempt FROM jobq.claim('fail');
SELECT jobq.fail(:job, 2, 'error');
SELECT jobq.cancel(:job);
-- jobs that failed together do not come back together
SELECT jobq.alter_queue('fail', retry_base => '1000 s', retry_cap => '1 h');
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 100) AS n), 'fail');
CREATE TEMP TABLE together AS SELECT job_id, jobq.fail(job_id, attempt, 'error') FROM jobq.claim('fail', 100);
SELECT count(DISTINCT date_trunc('second', run_at)) > 20 AS spread,
       bool_and(run_at - failed_at BETWEEN '1000 s' AND '1100 s') AS within
FROM together JOIN jobq.delayed USING (job_id) JOIN jobq.failure USING (job_id);
SELECT jobq.purge_queue('fail');

-- case 54: an error text of any size and of any letters never keeps an attempt from ending: it is cut at a letter's border
SELECT jobq.alter_queue('fail', retry_base => '0', max_attempts => 100);
SELECT jobq.enqueue('t', queue => 'fail') AS job \gset
CREATE FUNCTION pg_temp.keeps(job bigint, error text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    word text;
    kept text;
BEGIN
    SELECT jobq.fail(job_id, attempt, error) INTO word FROM jobq.claim('fail') WHERE job_id = job;
    SELECT f.error INTO kept FROM jobq.failures f WHERE job_id = job ORDER BY attempt DESC LIMIT 1;
    RETURN format('%s: %s bytes, %s', word, octet_length(kept),
                  CASE WHEN kept = error THEN 'whole' WHEN starts_with(error, kept) THEN 'cut' ELSE 'another text' END);
END
$$;
SELECT pg_temp.keeps(:job, '');
SELECT pg_temp.keeps(:job, repeat('x', 65535));
SELECT pg_temp.keeps(:job, repeat('x', 65536));
SELECT pg_temp.keeps(:job, repeat('x', 65537));
SELECT pg_temp.keeps(:job, repeat('ä', 32768));
SELECT pg_temp.keeps(:job, 'x' || repeat('ä', 32768));
SELECT pg_temp.keeps(:job, repeat('€', 30000));
SELECT pg_temp.keeps(:job, 'x' || repeat('€', 30000));
SELECT pg_temp.keeps(:job, 'xx' || repeat('€', 30000));
SELECT pg_temp.keeps(:job, repeat('😀', 20000));
SELECT pg_temp.keeps(:job, 'x' || repeat('😀', 20000));
SELECT pg_temp.keeps(:job, 'xxx' || repeat('😀', 20000));
SELECT pg_temp.keeps(:job, repeat('x', 100000000));
SELECT pg_temp.keeps(:job, E'\x01\x02\t\r\n\x7f''"\\ %s %n $1');
SELECT octet_length(last_error) FROM jobq.claim('fail');
SELECT jobq.cancel(:job);

-- nor does a failure that is on record already for that attempt
SELECT jobq.enqueue('t', queue => 'fail') AS job \gset
SELECT attempt FROM jobq.claim('fail');
INSERT INTO jobq.failure (job_id, attempt, kind, claimed_at, failed_at, worker, error) VALUES (:job, 1, 'error', now(), now(), 'w', 'was there');
SELECT jobq.fail(:job, 1, 'error');
SELECT pg_temp.stands(:job), count(*) FROM jobq.failures WHERE job_id = :job;
SELECT jobq.cancel(:job);

-- case 154: bytes that the encoding does not know are the server's to refuse; the attempt is still held
SELECT jobq.enqueue('t', queue => 'fail') AS job \gset
SELECT attempt FROM jobq.claim('fail');
SELECT pg_temp.outcome(format('SELECT jobq.fail(%s, 1, convert_from(''\xc3'', ''UTF8''))', :job));
SELECT jobq.fail(:job, 1, 'replaced by the worker: ' || chr(65533));

-- what is refused leaves the attempt as it was
SELECT attempt FROM jobq.claim('fail');
\pset format unaligned
\pset tuples_only on
SELECT arguments, pg_temp.outcome(format('SELECT jobq.fail(%s, 2, %s)', :job, arguments))
FROM unnest(ARRAY['NULL', '''e'', ''-1 us''', '''e'', ''1 mon''', '''e'', ''1 mon -30 days''', '''e'', ''-1 day 25 h''',
                  '''e'', ''178000000 years''', '''e'', ''2147483647 days''', '''e'', ''106751991 days''']) AS refused (arguments);
\pset format aligned
\pset tuples_only off
SELECT pg_temp.stands(:job), (SELECT count(*) FROM jobq.failure WHERE job_id = :job) AS failures;

-- promise 4: expired but not swept, the attempt is still its worker's to fail, and no crash
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 h' WHERE job_id = :job;
SELECT jobq.fail(:job, 2, 'late but first');
SELECT died, retried FROM jobq.sweep();
SELECT pg_temp.stands(:job);
SELECT attempt, kind FROM jobq.failures WHERE job_id = :job ORDER BY attempt;

-- a failure that rolls back never was
SELECT attempt FROM jobq.claim('fail');
BEGIN;
SELECT jobq.fail(:job, 3, 'rolled back');
ROLLBACK;
SELECT pg_temp.stands(:job), (SELECT count(*) FROM jobq.failure WHERE job_id = :job) AS failures;
SELECT jobq.complete(:job, 3);

-- a failed job's failures stay while it lives, also over its success (case 53)
SELECT attempt, kind FROM jobq.failures WHERE job_id = :job ORDER BY attempt;

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^fail( |$)';
\o
