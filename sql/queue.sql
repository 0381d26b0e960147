-- Queues: making, changing, pausing, emptying and dropping them.
\set VERBOSITY terse
SET client_min_messages = warning;
SET jobq.claim_in_transaction = 'allow';

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
FROM (SELECT 'delayed' FROM jobq.delayed WHERE job_id = id
      UNION ALL
      SELECT 'ready' FROM jobq.ready WHERE job_id = id
      UNION ALL
      SELECT 'running' FROM jobq.lease WHERE job_id = id
      UNION ALL
      SELECT 'ended' FROM jobq.finished WHERE job_id = id) AS lines (line)
$$;

-- a new queue has the settings of its signature's defaults
SELECT jobq.create_queue('queue') AS made;
SELECT * FROM jobq.queues WHERE queue = 'queue';

-- made again: false, and the queue keeps what it had
SELECT jobq.create_queue('queue', lease => '7 s', max_attempts => 1, keep_dead => '1 s') AS made;
SELECT lease, max_attempts, keep_dead FROM jobq.queues WHERE queue = 'queue';

-- alter_queue changes what is given, NULL leaves
SELECT jobq.alter_queue('queue', retry_base => '2 s', max_crashes => 5);
SELECT jobq.alter_queue('queue', lease => NULL, max_attempts => NULL);
SELECT lease, max_attempts, max_crashes, retry_base, retry_cap, keep_completed, keep_dead
FROM jobq.queues WHERE queue = 'queue';
SELECT jobq.alter_queue('queue', '61 s', 11, 6, '3 s', '2 h', '2 days', '31 days');
SELECT lease, max_attempts, max_crashes, retry_base, retry_cap, keep_completed, keep_dead
FROM jobq.queues WHERE queue = 'queue';

-- NULL in a parameter with a default means the default
SELECT jobq.create_queue('queue nulls', NULL, NULL, NULL, NULL, NULL, NULL, NULL) AS made;
SELECT lease, max_attempts, max_crashes, retry_base, retry_cap, keep_completed, keep_dead
FROM jobq.queues WHERE queue = 'queue nulls';

-- a queue's name: 1 to 63 bytes, of any letters
\pset format unaligned
\pset tuples_only on
SELECT call, pg_temp.outcome(call)
FROM (VALUES
    ('SELECT jobq.create_queue(NULL)'),
    ('SELECT jobq.create_queue('''')'),
    (format('SELECT jobq.create_queue(%L)', repeat('q', 63))),
    (format('SELECT jobq.create_queue(%L)', repeat('q', 64))),
    (format('SELECT jobq.create_queue(%L)', 'q' || repeat('ä', 31))),
    (format('SELECT jobq.create_queue(%L)', repeat('ä', 32))),
    ('SELECT jobq.create_queue(''sql/10'')')) AS calls (call);

-- case 157: settings out of bounds, in create_queue and in alter_queue
SELECT setting, pg_temp.outcome(format('SELECT jobq.create_queue(''queue refused'', %s)', setting)),
       pg_temp.outcome(format('SELECT jobq.alter_queue(''queue'', %s)', setting))
FROM (VALUES
    ('lease => ''999 ms'''),
    ('lease => ''24 h 1 us'''),
    ('lease => ''0'''),
    ('lease => ''-1 s'''),
    ('lease => ''1 month'''),
    ('lease => ''1 month -29 days'''),
    ('max_attempts => 0'),
    ('max_attempts => -1'),
    ('max_crashes => 0'),
    ('max_crashes => -2147483648'),
    ('retry_base => ''-1 us'''),
    ('retry_base => ''1 month'''),
    ('retry_base => ''178000000 years'''),
    ('retry_base => ''2 days -1 s'''),
    ('retry_cap => ''-1 s'''),
    ('retry_cap => ''1 year'''),
    ('keep_completed => ''-1 s'''),
    ('keep_completed => ''-1 month'''),
    ('keep_completed => ''1 month -1 day'''),
    ('keep_dead => ''-1 day''')) AS settings (setting);

-- and at the bounds
SELECT setting, pg_temp.outcome(format('SELECT jobq.alter_queue(''queue nulls'', %s)', setting))
FROM (VALUES
    ('lease => ''1 s'''),
    ('lease => ''24 h'''),
    ('lease => ''1 day'''),
    ('max_attempts => 1'),
    ('max_attempts => 2147483647'),
    ('max_crashes => 1'),
    ('max_crashes => 2147483647'),
    ('retry_base => ''0'''),
    ('retry_cap => ''0'''),
    ('keep_completed => ''0'''),
    ('keep_completed => ''3 months'''),
    ('keep_completed => ''1000 years'''),
    ('keep_dead => ''178000000 years'''),
    ('keep_dead => ''365000 days''')) AS settings (setting);
SELECT count(*) FROM jobq.queues WHERE queue = 'queue refused';

-- an unknown queue is an error that says what to do
SELECT call, pg_temp.outcome(call)
FROM (VALUES
    ('SELECT jobq.alter_queue(''queue missing'', ''5 s'')'),
    ('SELECT jobq.drop_queue(''queue missing'')'),
    ('SELECT jobq.drop_queue(''queue missing'', true)'),
    ('SELECT jobq.pause_queue(''queue missing'')'),
    ('SELECT jobq.resume_queue(''queue missing'')'),
    ('SELECT jobq.purge_queue(''queue missing'')'),
    ('SELECT jobq.set_group(''queue missing'', ''group'')'),
    ('SELECT jobq.queue_counts(''queue missing'')'),
    ('SELECT jobq.queue_counts(''queue missing'', true)'),
    ('SELECT jobq.retry_dead(''queue missing'')'),
    ('SELECT jobq.cancel_key(''queue missing'', ''k'')'),
    ('SELECT jobq.enqueue(''t'', queue => ''queue missing'')'),
    ('SELECT jobq.enqueue_unique(''t'', queue => ''queue missing'')'),
    ('SELECT jobq.enqueue_batch(''t'', ''[1]'', ''queue missing'')'),
    ('SELECT jobq.claim(''queue missing'')'),
    ('SELECT jobq.claim_from(ARRAY[''queue'', ''queue missing''])'),
    ('SELECT jobq.complete_and_claim(''{}'', ''{}'', ''queue missing'')'),
    ('SELECT jobq.claim(''queue with "quotes" and %s'')')) AS calls (call);
\pset format aligned
\pset tuples_only off

-- paused: nothing is claimed; what runs may end, what is due is promoted
SELECT jobq.create_queue('queue paused', retry_base => '0') AS made;
SELECT jobq.enqueue('runs', queue => 'queue paused') AS running \gset
SELECT jobq.enqueue('runs too', queue => 'queue paused') AS running_too \gset
SELECT count(*) FROM jobq.claim('queue paused', 2);
SELECT jobq.enqueue('waits', queue => 'queue paused', delay => '1 h') AS waits \gset
SELECT jobq.enqueue('is ready', queue => 'queue paused') AS ready \gset
SELECT jobq.pause_queue('queue paused');
SELECT jobq.pause_queue('queue paused');
SELECT paused FROM jobq.queues WHERE queue = 'queue paused';
UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '1 s' WHERE job_id = :waits;
SELECT promoted FROM jobq.sweep();
SELECT count(*) FROM jobq.claim('queue paused', 10);
SELECT count(*) FROM jobq.claim_from(ARRAY['queue paused'], 10);
SELECT count(*) FROM jobq.complete_and_claim(ARRAY[:running], ARRAY[1], 'queue paused', 10);
SELECT pg_temp.stands(:running) AS completed, jobq.renew(:running_too, 1) IS NOT NULL AS renewed,
       jobq.fail(:running_too, 1, 'failed in the pause') AS failed, pg_temp.stands(:waits) AS promoted;
SELECT jobq.enqueue('in the pause', queue => 'queue paused') IS NOT NULL AS enqueued;
SELECT count(*) FROM jobq.claim('queue paused', 10);
SELECT jobq.resume_queue('queue paused');
SELECT jobq.resume_queue('queue paused');
SELECT paused FROM jobq.queues WHERE queue = 'queue paused';
SELECT task FROM jobq.claim('queue paused', 10) ORDER BY task;

-- purge: what waits goes without trace, keys too; what runs or ended stays
SELECT jobq.create_queue('queue purged') AS made;
SELECT jobq.enqueue('ends', queue => 'queue purged') AS ended \gset
SELECT jobq.complete(job_id, attempt) FROM jobq.claim('queue purged');
SELECT jobq.enqueue('runs', queue => 'queue purged', job_key => 'running') AS running \gset
SELECT count(*) FROM jobq.claim('queue purged');
SELECT jobq.enqueue('is ready', queue => 'queue purged', job_key => 'ready') AS ready \gset
SELECT jobq.enqueue('waits', queue => 'queue purged', job_key => 'delayed', delay => '1 h') AS delayed \gset
SELECT jobq.enqueue('fails', queue => 'queue purged', priority => 0) AS failed \gset
SELECT jobq.fail(job_id, attempt, 'once') FROM jobq.claim('queue purged');
SELECT count(*) FROM jobq.failures WHERE job_id = :failed;
SELECT jobq.purge_queue('queue purged');
SELECT jobq.purge_queue('queue purged');
SELECT pg_temp.stands(:ended) AS ended, pg_temp.stands(:running) AS running, pg_temp.stands(:ready) AS ready,
       pg_temp.stands(:delayed) AS delayed, pg_temp.stands(:failed) AS failed;
SELECT count(*) FROM jobq.failure WHERE job_id = :failed;
SELECT key, created
FROM unnest(ARRAY['running', 'ready', 'delayed']) AS keys (key),
     jobq.enqueue_unique('again', queue => 'queue purged', job_key => key)
ORDER BY key;

-- case 46: drop_queue refuses while a job is live, in whichever line it stands
SELECT jobq.create_queue('queue dropped', retry_base => '0', max_attempts => 2) AS made;
SELECT jobq.drop_queue('queue dropped');
SELECT jobq.create_queue('queue dropped', retry_base => '0', max_attempts => 2) AS made;
SELECT jobq.enqueue('t', queue => 'queue dropped', job_key => 'k', delay => '1 h') AS job \gset
SELECT queue_id AS first_queue_id FROM jobq.job WHERE job_id = :job \gset
SELECT jobq.drop_queue('queue dropped');
\echo :LAST_ERROR_SQLSTATE
SELECT jobq.reschedule(:job, clock_timestamp()) AS ready;
SELECT jobq.drop_queue('queue dropped');
\echo :LAST_ERROR_SQLSTATE
SELECT attempt FROM jobq.claim('queue dropped');
SELECT jobq.drop_queue('queue dropped', false);
\echo :LAST_ERROR_SQLSTATE
SELECT jobq.drop_queue('queue dropped', NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT jobq.fail(:job, 1, 'error', retry => false);
-- only history left: it goes with the queue
SELECT jobq.drop_queue('queue dropped');
SELECT pg_temp.stands(:job), (SELECT count(*) FROM jobq.failure WHERE job_id = :job) AS failures,
       (SELECT count(*) FROM jobq.queues WHERE queue = 'queue dropped') AS queues;

-- forced: everything goes, and the workers see that their leases are lost
SELECT jobq.create_queue('queue dropped') AS made;
SELECT jobq.enqueue('runs', queue => 'queue dropped', job_key => 'running') AS running \gset
SELECT queue_id > :first_queue_id AS a_new_queue FROM jobq.job WHERE job_id = :running;
SELECT count(*) FROM jobq.claim('queue dropped');
SELECT jobq.enqueue('is ready', queue => 'queue dropped', job_key => 'ready') AS ready \gset
SELECT jobq.enqueue('waits', queue => 'queue dropped', job_key => 'delayed', delay => '1 h') AS delayed \gset
SELECT jobq.drop_queue('queue dropped', force => true);
SELECT jobq.renew(:running, 1), jobq.complete(:running, 1), jobq.fail(:running, 1, 'late'), jobq.snooze(:running, 1, '1 s');
SELECT pg_temp.stands(:running) AS running, pg_temp.stands(:ready) AS ready, pg_temp.stands(:delayed) AS delayed,
       (SELECT count(*) FROM jobq.key WHERE job_id IN (:running, :ready, :delayed)) AS keys;
SELECT count(*) FROM jobq.claim('queue dropped');
\echo :LAST_ERROR_SQLSTATE

-- the queue "default" comes to exist at its first enqueue; before that, claim finds it empty
CREATE DATABASE jobq_queue;
\set here :DBNAME
\c jobq_queue
SET client_min_messages = warning;
CREATE EXTENSION jobq;
SELECT count(*) FROM jobq.queues;
SELECT count(*) FROM jobq.claim();
SELECT count(*) FROM jobq.claim('default', 100);
SELECT count(*) FROM jobq.claim_from(ARRAY['default']);
SELECT count(*) FROM jobq.queues;
SELECT jobq.enqueue('t') IS NOT NULL AS enqueued;
SELECT queue, lease, max_attempts, max_crashes, retry_base, retry_cap, keep_completed, keep_dead, paused FROM jobq.queues;
SELECT task, queue FROM jobq.claim();
-- dropped, it may come again
SELECT jobq.drop_queue('default', true);
SELECT count(*) FROM jobq.claim();
SELECT count(*) FROM jobq.enqueue_batch('t', '[1, 2]');
SELECT count(*) FROM jobq.claim('default', 10);
-- and be made with settings of one's own
SELECT jobq.drop_queue('default', true);
SELECT jobq.create_queue('default', lease => '5 s') AS made;
SELECT jobq.enqueue('t') IS NOT NULL AS enqueued;
SELECT lease FROM jobq.queues WHERE queue = 'default';
\c :here
DROP DATABASE jobq_queue;

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^queue( |$)';
\o
