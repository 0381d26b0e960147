-- Keys: one live job for each key of a queue, in four modes.
\set VERBOSITY terse
SET client_min_messages = warning;

-- what a statement ends with: its SQLSTATE, message and hint, numbers hidden, or "accepted"
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
      SELECT format('%s, attempt %s, tries %s%s', state, attempt, tries, ', ' || regexp_replace(reason, 'job \d+', 'job N'))
      FROM jobq.finished WHERE job_id = id) AS lines (line)
$$;

SELECT jobq.create_queue('key', retry_base => '0') AS made;
SELECT jobq.create_queue('key elsewhere') AS made;

-- keep: the job that is there, unchanged, in whichever line it stands
SELECT jobq.enqueue('first', '1', 'key', job_key => 'keep', delay => '1 h') AS job \gset
SELECT jobq.enqueue('second', '2', 'key', 0, job_key => 'keep') = :job AS the_same;
SELECT job_id = :job AS the_same, created FROM jobq.enqueue_unique('second', '2', 'key', 0, job_key => 'keep');
SELECT task, payload, priority, pg_temp.stands(job_id) FROM jobq.job WHERE job_id = :job;
SELECT jobq.reschedule(:job, clock_timestamp());
SELECT job_id = :job AS the_same, created FROM jobq.enqueue_unique('second', '2', 'key', job_key => 'keep', job_key_mode => NULL);
SELECT attempt FROM jobq.claim('key');
-- case 64: also while it runs: the caller sees which job holds the key
SELECT job_id = :job AS the_same, created FROM jobq.enqueue_unique('second', '2', 'key', job_key => 'keep', job_key_mode => 'keep');
SELECT pg_temp.stands(:job);
-- a key is its queue's own, and no key is no key
SELECT created FROM jobq.enqueue_unique('first', '1', 'key elsewhere', job_key => 'keep');
SELECT n, created FROM generate_series(1, 2) AS n, jobq.enqueue_unique('none', to_jsonb(n), 'key elsewhere');
SELECT n, created FROM generate_series(1, 2) AS n, jobq.enqueue_unique('none', to_jsonb(n), 'key elsewhere', job_key_mode => 'reject');
-- the empty text is none either: a mistake, and refused
SELECT pg_temp.outcome('SELECT jobq.enqueue(''empty'', queue => ''key elsewhere'', job_key => '''')');
-- keys are compared byte by byte
SELECT job_key, created
FROM unnest(ARRAY['a', 'A', 'a ', 'ä', U&'a\0308', 'a']) AS keys (job_key),
     jobq.enqueue_unique('t', queue => 'key elsewhere', job_key => job_key);

-- the key is free when its job has ended: completed, dead, cancelled, purged
SELECT jobq.complete(:job, 1);
SELECT pg_temp.stands(:job);
SELECT job_id AS job, created FROM jobq.enqueue_unique('dies', queue => 'key', job_key => 'keep') \gset
\echo :created
SELECT jobq.fail(job_id, attempt, 'error') FROM jobq.claim('key');
SELECT pg_temp.stands(:job);
SELECT created FROM jobq.enqueue_unique('kept over a retry', queue => 'key', job_key => 'keep');
SELECT jobq.fail(job_id, attempt, 'error', retry => false) FROM jobq.claim('key');
SELECT pg_temp.stands(:job);
SELECT job_id AS job, created FROM jobq.enqueue_unique('cancelled', queue => 'key', job_key => 'keep') \gset
\echo :created
SELECT jobq.cancel_key('key', 'keep');
SELECT job_id AS job, created FROM jobq.enqueue_unique('purged', queue => 'key', job_key => 'keep') \gset
\echo :created
SELECT jobq.purge_queue('key');
SELECT job_id AS job, created FROM jobq.enqueue_unique('snoozed', queue => 'key', job_key => 'keep') \gset
\echo :created
SELECT jobq.snooze(job_id, attempt, '1 h') FROM jobq.claim('key');
SELECT created FROM jobq.enqueue_unique('kept over a snooze', queue => 'key', job_key => 'keep');
SELECT pg_temp.stands(:job);
SELECT jobq.cancel(:job);

-- replace: a waiting job becomes what the new call says, with fresh counters; its id and its attempts go on
SELECT jobq.enqueue('t', '{"old": 1}', 'key', 5, max_attempts => 3, max_crashes => 2, group_key => 'old', job_key => 'replace', headers => '{"old": 1}') AS job \gset
SELECT enqueued_at AS enqueued FROM jobq.job WHERE job_id = :job \gset
SELECT jobq.fail(job_id, attempt, 'error', '1 h') FROM jobq.claim('key');
UPDATE jobq.delayed SET crashes = 1 WHERE job_id = :job;
SELECT pg_temp.stands(:job);
SELECT job_id = :job AS the_same, created
FROM jobq.enqueue_unique('u', '{"new": 1}', 'key', 7, max_attempts => 9, max_crashes => 8, group_key => 'new', job_key => 'replace',
                         job_key_mode => 'replace', headers => '{"new": 1}');
SELECT task, payload, headers, priority, max_attempts, max_crashes, group_key, pg_temp.stands(job_id) FROM jobq.job WHERE job_id = :job;
SELECT priority, group_key FROM jobq.ready WHERE job_id = :job;
-- promise 3: the next attempt is the second, and the first may not end it
SELECT attempt, tries, payload, last_error FROM jobq.claim('key');
SELECT jobq.complete(:job, 1) AS by_the_first, jobq.snooze(:job, 2, '0') AS by_the_second;
-- a ready one is put off, a delayed one is put forward or off
SELECT jobq.enqueue('t', '2', 'key', job_key => 'replace', job_key_mode => 'replace', delay => '1 h') = :job AS the_same, pg_temp.stands(:job);
SELECT pg_temp.stands(:job);
SELECT jobq.enqueue('t', '3', 'key', job_key => 'replace', job_key_mode => 'replace', run_at => '2099-01-01') = :job AS the_same;
SELECT run_at = '2099-01-01' AS put_off, pg_temp.stands(:job) FROM jobq.delayed WHERE job_id = :job;
SELECT jobq.enqueue('t', '4', 'key', job_key => 'replace', job_key_mode => 'replace') = :job AS the_same;
SELECT payload, headers, priority, max_attempts, max_crashes, pg_temp.stands(job_id) FROM jobq.job WHERE job_id = :job;
-- and none there: it is made
SELECT created FROM jobq.enqueue_unique('t', queue => 'key', job_key => 'replace made', job_key_mode => 'replace');

-- preserve_run_at: the same, but its time stays
SELECT jobq.enqueue('t', '1', 'key', job_key => 'preserve', run_at => '2099-01-01') AS job \gset
SELECT job_id = :job AS the_same, created
FROM jobq.enqueue_unique('t', '2', 'key', 2, job_key => 'preserve', job_key_mode => 'preserve_run_at');
SELECT payload, priority, run_at = '2099-01-01' AS preserved, pg_temp.stands(job_id) FROM jobq.job JOIN jobq.delayed USING (job_id) WHERE job_id = :job;
SELECT jobq.enqueue('t', '3', 'key', job_key => 'preserve', job_key_mode => 'preserve_run_at', delay => '1 s') = :job AS the_same;
SELECT payload, run_at = '2099-01-01' AS preserved FROM jobq.job JOIN jobq.delayed USING (job_id) WHERE job_id = :job;
SELECT jobq.reschedule(:job, clock_timestamp());
SELECT jobq.enqueue('t', '4', 'key', 8, job_key => 'preserve', job_key_mode => 'preserve_run_at', delay => '1 h') = :job AS the_same;
SELECT payload, r.priority, pg_temp.stands(job_id) FROM jobq.job JOIN jobq.ready r USING (job_id) WHERE job_id = :job;
SELECT created FROM jobq.enqueue_unique('t', queue => 'key', job_key => 'preserve made', job_key_mode => 'preserve_run_at', delay => '1 h');
SELECT jobq.purge_queue('key') > 0 AS purged;

-- replace while it runs: a new job; the running one may complete
SELECT jobq.enqueue('t', '1', 'key', job_key => 'running') AS old \gset
SELECT attempt FROM jobq.claim('key');
SELECT job_id AS new, created FROM jobq.enqueue_unique('t', '2', 'key', job_key => 'running', job_key_mode => 'replace') \gset
\echo :created
SELECT :old <> :new AS another, pg_temp.stands(:old) AS old, pg_temp.stands(:new) AS new;
SELECT jobq.renew(:old, 1) IS NOT NULL AS still_held, jobq.complete(:old, 1) AS completed;
SELECT pg_temp.stands(:old) AS old, pg_temp.stands(:new) AS new;

-- but gets no further try: failed, given back or expired it is cancelled
SELECT attempt FROM jobq.claim('key');
SELECT :new AS old \gset
SELECT jobq.enqueue('t', '3', 'key', job_key => 'running', job_key_mode => 'preserve_run_at') AS new \gset
SELECT :old <> :new AS another;
SELECT jobq.fail(:old, 1, 'error');
SELECT pg_temp.stands(:old) AS old, pg_temp.stands(:new) AS new;
SELECT reason = 'replaced by job ' || :new AS named FROM jobq.history WHERE job_id = :old;
SELECT kind, error FROM jobq.failures WHERE job_id = :old;
SELECT attempt FROM jobq.claim('key');
SELECT :new AS old \gset
SELECT jobq.enqueue('t', '4', 'key', job_key => 'running', job_key_mode => 'replace') AS new \gset
SELECT jobq.snooze(:old, 1, '1 h');
SELECT pg_temp.stands(:old) AS old, pg_temp.stands(:new) AS new;
SELECT count(*) AS failures FROM jobq.failures WHERE job_id = :old;
SELECT attempt FROM jobq.claim('key');
SELECT :new AS old \gset
SELECT jobq.enqueue('t', '5', 'key', job_key => 'running', job_key_mode => 'replace') AS new \gset
-- replaced once, its key is the new job's: that one is replaced next
SELECT jobq.enqueue('t', '6', 'key', job_key => 'running', job_key_mode => 'replace') = :new AS the_new_one;

-- case 44: it expires beside fifty innocent ones, and one pass settles all of them
SELECT count(*) FROM jobq.enqueue_batch('innocent', (SELECT jsonb_agg(n) FROM generate_series(1, 50) AS n), 'key', 0);
SELECT count(*) FROM jobq.claim('key', 50);
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s'
WHERE queue_id = (SELECT queue_id FROM jobq.job WHERE job_id = :old);
SELECT retried, died FROM jobq.sweep();
SELECT pg_temp.stands(:old) AS old, pg_temp.stands(:new) AS new;
SELECT kind FROM jobq.failures WHERE job_id = :old;
SELECT pg_temp.stands(job_id), count(*) FROM jobq.jobs WHERE queue = 'key' AND task = 'innocent' GROUP BY 1;
SELECT jobq.purge_queue('key') > 0 AS purged;

-- case 63: after a failure of the replaced one there is still one job of the key
SELECT jobq.enqueue('a', queue => 'key', job_key => 'k') AS a \gset
SELECT attempt FROM jobq.claim('key');
SELECT jobq.enqueue('b', queue => 'key', job_key => 'k', job_key_mode => 'replace') AS b \gset
SELECT jobq.fail(:a, 1, 'error');
SELECT jobq.enqueue('c', queue => 'key', job_key => 'k') = :b AS kept;
SELECT task, state FROM jobq.jobs WHERE queue = 'key' AND job_key = 'k';
SELECT jobq.cancel(:b);

-- case 62: a job that waits for its second try does not stand in the way of its own promotion, nor of others'
SELECT jobq.enqueue('a', queue => 'key', job_key => 'k') AS a \gset
SELECT jobq.fail(job_id, attempt, 'error', '1 h') FROM jobq.claim('key');
SELECT jobq.enqueue('b', queue => 'key', job_key => 'k') = :a AS kept;
SELECT count(*) FROM jobq.enqueue_batch('innocent', (SELECT jsonb_agg(n) FROM generate_series(1, 100) AS n), 'key', delay => '1 h');
UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '1 s'
WHERE queue_id = (SELECT queue_id FROM jobq.job WHERE job_id = :a);
SELECT promoted FROM jobq.sweep();
SELECT pg_temp.stands(:a);
SELECT jobq.purge_queue('key');

-- reject: an error that names the job which holds the key; and none there: it is made
SELECT created FROM jobq.enqueue_unique('t', queue => 'key', job_key => 'reject', job_key_mode => 'reject');
SELECT pg_temp.outcome('SELECT jobq.enqueue(''t'', queue => ''key'', job_key => ''reject'', job_key_mode => ''reject'')');
SELECT attempt, job_id AS job FROM jobq.claim('key') \gset
SELECT pg_temp.outcome('SELECT jobq.enqueue_unique(''t'', queue => ''key'', job_key => ''reject'', job_key_mode => ''reject'')');
DO $$
DECLARE
    holder bigint := (SELECT job_id FROM jobq.jobs WHERE queue = 'key' AND job_key = 'reject');
    message text;
BEGIN
    PERFORM jobq.enqueue('t', queue => 'key', job_key => 'reject', job_key_mode => 'reject');
EXCEPTION WHEN unique_violation THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
    ASSERT message ~ ('\m' || holder || '\M'), message;
END
$$;
SELECT jobq.complete(:job, 1);
SELECT created FROM jobq.enqueue_unique('t', queue => 'key', job_key => 'reject', job_key_mode => 'reject');
-- what was refused left nothing behind
SELECT count(*) FROM jobq.jobs WHERE queue = 'key' AND job_key = 'reject';

-- a replaced job is not the fault of a bad call: bad values change nothing
SELECT jobq.enqueue('t', '1', 'key', job_key => 'unharmed') AS job \gset
SELECT pg_temp.outcome('SELECT jobq.enqueue(''t'', ''2'', ''key'', 11, job_key => ''unharmed'', job_key_mode => ''replace'')');
SELECT pg_temp.outcome('SELECT jobq.enqueue(''t'', ''2'', ''key'', delay => ''-1 s'', job_key => ''unharmed'', job_key_mode => ''replace'')');
SELECT pg_temp.outcome('SELECT jobq.enqueue(''t'', ''2'', ''key'', job_key => ''unharmed'', job_key_mode => ''Replace'')');
SELECT payload, priority FROM jobq.job WHERE job_id = :job;

-- a key in a transaction that rolls back is free
BEGIN;
SELECT created FROM jobq.enqueue_unique('t', queue => 'key', job_key => 'rolled back');
SELECT created FROM jobq.enqueue_unique('t', queue => 'key', job_key => 'rolled back');
ROLLBACK;
SELECT created FROM jobq.enqueue_unique('t', queue => 'key', job_key => 'rolled back');

-- promise 1: each key belongs to a live job of its queue that has this key, and each live keyed job to a key, but the replaced
SELECT count(*) FROM jobq.key k
WHERE NOT EXISTS (SELECT FROM jobq.job j JOIN jobq.jobs USING (job_id)
                  WHERE j.job_id = k.job_id AND j.queue_id = k.queue_id AND j.job_key = k.job_key);
SELECT count(*) FROM jobq.jobs v LEFT JOIN jobq.lease USING (job_id)
WHERE v.job_key IS NOT NULL AND replaced_by IS NULL AND NOT EXISTS (SELECT FROM jobq.key k WHERE k.job_id = v.job_id);

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^key( |$)';
\o
