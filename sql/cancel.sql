-- Cancel: a job is called off wherever it stands; a running one loses its lease.
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

SELECT jobq.create_queue('cancel', keep_completed => '1 h', keep_dead => '3 days') AS made;

-- a waiting job, ready or delayed, is cancelled with the reason given or none; it leaves no failure, for there was no attempt
SELECT jobq.enqueue('t', queue => 'cancel', job_key => 'ready') AS ready \gset
SELECT jobq.enqueue('t', queue => 'cancel', job_key => 'delayed', delay => '1 h') AS delayed \gset
SELECT jobq.cancel(:ready), jobq.cancel(job_id => :delayed, reason => 'called off');
SELECT pg_temp.stands(:ready) AS ready, pg_temp.stands(:delayed) AS delayed;
SELECT count(*) FROM jobq.failure WHERE job_id IN (:ready, :delayed);
SELECT state, reason, worker, claimed_at, result, ended_at BETWEEN enqueued_at AND clock_timestamp() AS ended_at
FROM jobq.history WHERE job_id IN (:ready, :delayed) ORDER BY job_id;
-- kept as long as the dead
SELECT prune_at - ended_at AS kept FROM jobq.finished WHERE job_id = :ready;
SELECT count(*) FROM jobq.claim('cancel', 10);

-- a running one loses its lease: its worker's next word says so
SELECT jobq.enqueue('t', queue => 'cancel', job_key => 'running') AS running \gset
SELECT attempt FROM jobq.claim('cancel', worker => 'a worker');
SELECT jobq.cancel(:running, 'enough');
SELECT jobq.renew(:running, 1), jobq.complete(:running, 1), jobq.fail(:running, 1, 'late'), jobq.snooze(:running, 1, '0');
SELECT pg_temp.stands(:running);
-- promise 5: the cancelled attempt leaves its row
SELECT attempt, kind, error, worker, failed_at >= claimed_at AS times FROM jobq.failures WHERE job_id = :running;
SELECT state, reason, worker, attempt, tries FROM jobq.history WHERE job_id = :running;
-- and its key is free at once
SELECT created FROM jobq.enqueue_unique('t', queue => 'cancel', job_key => 'running');

-- between two tries, its failures stay
SELECT jobq.fail(job_id, attempt, 'error') FROM jobq.claim('cancel');
SELECT jobq.cancel_key('cancel', 'running');
SELECT pg_temp.stands(job_id), f.kind FROM jobq.history h JOIN jobq.failures f USING (job_id)
WHERE queue = 'cancel' AND job_id <> :running;

-- what has ended is not cancelled, nor what never was
SELECT jobq.cancel(:running) AS cancelled, jobq.cancel(:ready, 'again') AS again, jobq.cancel(0) AS no_job, jobq.cancel(-1) AS negative;
SELECT jobq.enqueue('t', queue => 'cancel') AS completed \gset
SELECT jobq.complete(job_id, attempt) FROM jobq.claim('cancel');
SELECT jobq.enqueue('t', queue => 'cancel') AS dead \gset
SELECT jobq.fail(job_id, attempt, 'error', retry => false) FROM jobq.claim('cancel');
SELECT jobq.cancel(:completed) AS completed, jobq.cancel(:dead) AS dead;
SELECT pg_temp.stands(:completed) AS completed, pg_temp.stands(:dead) AS dead, pg_temp.stands(:running) AS cancelled;

-- by key: the live job that has it, in that queue alone
SELECT jobq.create_queue('cancel elsewhere') AS made;
SELECT jobq.enqueue('t', queue => 'cancel', job_key => 'k') AS here \gset
SELECT jobq.enqueue('t', queue => 'cancel elsewhere', job_key => 'k') AS elsewhere \gset
SELECT jobq.cancel_key('cancel', 'nobody has it'), jobq.cancel_key('cancel', '');
SELECT jobq.cancel_key(queue => 'cancel', job_key => 'k', reason => 'by key');
SELECT pg_temp.stands(:here) AS here, pg_temp.stands(:elsewhere) AS elsewhere;
SELECT jobq.cancel_key('cancel', 'k');
SELECT attempt FROM jobq.claim('cancel elsewhere');
SELECT jobq.cancel_key('cancel elsewhere', 'k', 'while it runs');
SELECT jobq.renew(:elsewhere, 1), pg_temp.stands(:elsewhere);
-- of a replaced job that still runs and its successor, the successor has the key
SELECT jobq.enqueue('t', queue => 'cancel', job_key => 'k') AS old \gset
SELECT attempt FROM jobq.claim('cancel');
SELECT jobq.enqueue('t', queue => 'cancel', job_key => 'k', job_key_mode => 'replace') AS new \gset
SELECT jobq.cancel_key('cancel', 'k');
SELECT pg_temp.stands(:old) AS old, pg_temp.stands(:new) AS new;
-- and the old one can be cancelled by its id, without taking the key of a third
SELECT jobq.enqueue('t', queue => 'cancel', job_key => 'k') AS third \gset
SELECT jobq.cancel(:old);
SELECT pg_temp.stands(:old) AS old, pg_temp.stands(:third) AS third;
SELECT jobq.cancel(:third);

-- a cancellation that rolls back never was
SELECT jobq.enqueue('t', queue => 'cancel', job_key => 'k') AS job \gset
SELECT attempt FROM jobq.claim('cancel');
BEGIN;
SELECT jobq.cancel(:job);
SELECT jobq.renew(:job, 1);
ROLLBACK;
SELECT jobq.renew(:job, 1) IS NOT NULL AS held, pg_temp.stands(:job);

-- promise 4: an expired lease that is cancelled first is no crash
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 h' WHERE job_id = :job;
SELECT jobq.cancel(:job);
SELECT died, retried FROM jobq.sweep();
SELECT kind FROM jobq.failures WHERE job_id = :job;

-- bad values
\pset format unaligned
\pset tuples_only on
SELECT left(call, 60), pg_temp.outcome(call)
FROM (VALUES
    ('SELECT jobq.cancel(NULL)'),
    ('SELECT jobq.cancel_key(NULL, ''k'')'),
    ('SELECT jobq.cancel_key(''cancel'', NULL)'),
    (format('SELECT jobq.cancel_key(''cancel'', %L)', repeat('k', 255))),
    (format('SELECT jobq.cancel_key(''cancel'', %L)', repeat('k', 256)))) AS calls (call);
\pset format aligned
\pset tuples_only off
-- a reason is a text of any length, kept as an error is
SELECT jobq.enqueue('t', queue => 'cancel') AS job \gset
SELECT jobq.cancel(:job, repeat('ä', 100000));
SELECT octet_length(reason) AS bytes, reason ~ '^ä+$' AS letters FROM jobq.history WHERE job_id = :job;

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^cancel( |$)';
\o
