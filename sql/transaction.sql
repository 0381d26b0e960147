-- Transactions: what a job's verbs mean inside one, rolled back, in savepoints, and where they are refused.
\set VERBOSITY terse

SELECT jobq.create_queue('transaction', retry_base => '0') AS made;

-- a claim in a transaction block warns, once a session
SHOW jobq.claim_in_transaction;
\set VERBOSITY default
SELECT count(jobq.enqueue('t', to_jsonb(n), 'transaction')) FROM generate_series(1, 9) AS n;
BEGIN;
SELECT payload FROM jobq.claim('transaction');
SELECT payload FROM jobq.claim('transaction');
COMMIT;
BEGIN;
SELECT payload FROM jobq.claim_from(ARRAY['transaction']);
COMMIT;
\c
\set VERBOSITY default
SELECT payload FROM jobq.claim('transaction');
BEGIN;
SELECT payload FROM jobq.claim_from(ARRAY['transaction']);
COMMIT;
\c
\set VERBOSITY default
BEGIN;
SELECT payload FROM jobq.complete_and_claim('{}', '{}', 'transaction');
COMMIT;
-- one statement alone is no block; several sent at once are one
SELECT payload FROM jobq.claim('transaction');
\c
\set VERBOSITY default
SELECT 'sent at once' AS statement\; SELECT payload FROM jobq.claim('transaction');

-- allow: no word
\c
SET jobq.claim_in_transaction = 'allow';
BEGIN;
SELECT payload FROM jobq.claim('transaction');
COMMIT;
SELECT ready, running FROM jobq.queue_counts('transaction', true);

-- error: refused in a block, done outside
SET jobq.claim_in_transaction = 'error';
SELECT count(jobq.enqueue('t', to_jsonb(n), 'transaction')) FROM generate_series(10, 12) AS n;
BEGIN;
SELECT payload FROM jobq.claim('transaction');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT payload FROM jobq.claim_from(ARRAY['transaction']);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT payload FROM jobq.complete_and_claim('{}', '{}', 'transaction');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
SELECT payload FROM jobq.claim('transaction');
SELECT payload FROM jobq.claim_from(ARRAY['transaction']);
SELECT payload FROM jobq.complete_and_claim('{}', '{}', 'transaction');
-- everything else may be done in a block
BEGIN;
SELECT jobq.enqueue('t', queue => 'transaction') AS job \gset
SELECT jobq.cancel(:job), jobq.retry(:job), jobq.reschedule(:job, priority => 1);
SELECT promoted FROM jobq.sweep();
ROLLBACK;
SELECT count(*) FROM jobq.jobs WHERE job_id = :job;
\c
SET jobq.claim_in_transaction = 'allow';

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

-- enqueued in a transaction that rolls back: there is no job; committed: there is
BEGIN;
SELECT jobq.enqueue('t', queue => 'transaction') AS job \gset
SELECT pg_temp.stands(:job);
ROLLBACK;
SELECT pg_temp.stands(:job);
BEGIN;
SELECT jobq.enqueue('t', queue => 'transaction') AS job \gset
COMMIT;
SELECT pg_temp.stands(:job);

-- promise 2: a claim that rolls back counts nothing, and the job is there for the next
BEGIN;
SELECT attempt FROM jobq.claim('transaction');
SELECT pg_temp.stands(:job);
ROLLBACK;
SELECT pg_temp.stands(:job);
SELECT attempt, tries FROM jobq.claim('transaction');
SELECT jobq.snooze(:job, 1, '0');

-- savepoints: what was rolled back to is undone, and no more
BEGIN;
SAVEPOINT before;
SELECT attempt FROM jobq.claim('transaction');
ROLLBACK TO before;
SELECT attempt FROM jobq.claim('transaction');
SAVEPOINT claimed;
SELECT jobq.complete(:job, 2);
ROLLBACK TO claimed;
SELECT jobq.fail(:job, 2, 'error');
SAVEPOINT failed;
SELECT jobq.enqueue('u', queue => 'transaction') AS undone \gset
ROLLBACK TO failed;
RELEASE before;
SELECT jobq.enqueue('u', queue => 'transaction') AS done \gset
COMMIT;
SELECT pg_temp.stands(:job) AS job, pg_temp.stands(:undone) AS undone, pg_temp.stands(:done) AS done;

-- a whole life in one transaction, and in one that rolls back
BEGIN;
SELECT jobq.create_queue('transaction whole') AS made;
SELECT jobq.enqueue('t', queue => 'transaction whole', job_key => 'k', delay => '1 h') AS whole \gset
SELECT jobq.reschedule(:whole, clock_timestamp());
SELECT jobq.snooze(job_id, attempt, '0') FROM jobq.claim('transaction whole');
SELECT jobq.complete(job_id, attempt) FROM jobq.claim('transaction whole');
SELECT pg_temp.stands(:whole);
ROLLBACK;
SELECT pg_temp.stands(:whole), (SELECT count(*) FROM jobq.queues WHERE queue = 'transaction whole') AS queues;
SELECT count(*) FROM jobq.claim('transaction whole');
BEGIN;
SELECT jobq.create_queue('transaction whole') AS made;
SELECT jobq.enqueue('t', queue => 'transaction whole') AS whole \gset
SELECT jobq.complete(job_id, attempt) FROM jobq.claim('transaction whole');
COMMIT;
SELECT pg_temp.stands(:whole);
-- a queue dropped in a transaction that rolls back is there
BEGIN;
SELECT jobq.drop_queue('transaction whole');
SELECT jobq.enqueue('t', queue => 'transaction whole');
ROLLBACK;
SELECT jobq.enqueue('t', queue => 'transaction whole') IS NOT NULL AS enqueued;

-- an error in a statement undoes all that the statement did
SELECT jobq.purge_queue('transaction') > 0 AS purged;
SELECT count(*) FROM jobq.enqueue_batch('t', '[1, 2, 3]', 'transaction');
SELECT payload, 1 / (payload::int - 2) FROM jobq.claim('transaction', 3);
SELECT state, attempt, count(*) FROM jobq.jobs WHERE queue = 'transaction' GROUP BY 1, 2 ORDER BY 1;
DO $$
BEGIN
    PERFORM jobq.claim('transaction', 2);
    PERFORM 1 / 0;
EXCEPTION WHEN division_by_zero THEN
    PERFORM jobq.claim('transaction', 1);
END
$$;
SELECT state, attempt, count(*) FROM jobq.jobs WHERE queue = 'transaction' GROUP BY 1, 2 ORDER BY 1;
SELECT jobq.purge_queue('transaction');

-- case 29: every isolation level; a claim leaves the session's settings as they were
SELECT level, jobq.enqueue('t', to_jsonb(level), 'transaction') IS NOT NULL AS enqueued
FROM unnest(ARRAY['read uncommitted', 'repeatable read', 'serializable']) AS levels (level);
SET default_transaction_isolation = 'read uncommitted';
SELECT payload, jobq.complete(job_id, attempt) FROM jobq.claim('transaction');
SET default_transaction_isolation = 'repeatable read';
SELECT payload, jobq.complete(job_id, attempt) FROM jobq.claim('transaction');
SET default_transaction_isolation = 'serializable';
SELECT jobq.enqueue('t', queue => 'transaction', job_key => 'k') AS job \gset
SELECT jobq.enqueue('t', queue => 'transaction', job_key => 'k') = :job AS kept;
SELECT payload FROM jobq.claim('transaction', 10);
SELECT jobq.renew(:job, 1) IS NOT NULL AS renewed, jobq.fail(:job, 1, 'error', '1 h') AS failed;
SELECT count(*) >= 0 AS swept FROM jobq.sweep();
SHOW transaction_isolation;
RESET default_transaction_isolation;

-- case 119: a transaction that may only read refuses every verb that writes, and reads
SELECT jobq.enqueue('t', queue => 'transaction') AS job \gset
SET default_transaction_read_only = on;
\set VERBOSITY sqlstate
SELECT jobq.enqueue('t', queue => 'transaction');
SELECT jobq.enqueue_batch('t', '[1]', queue => 'transaction');
SELECT count(*) FROM jobq.claim('transaction');
SELECT count(*) FROM jobq.complete_and_claim('{}', '{}', 'transaction');
SELECT * FROM jobq.sweep();
SELECT jobq.cancel(:job);
SELECT jobq.reschedule(:job, priority => 1);
SELECT jobq.renew(:job, 1);
SELECT jobq.complete(:job, 1);
SELECT jobq.complete_batch(ARRAY[:job], ARRAY[1]);
SELECT jobq.fail(:job, 1, 'error');
SELECT jobq.snooze(:job, 1, '0');
SELECT jobq.retry(:job);
SELECT jobq.purge_queue('transaction');
SELECT jobq.pause_queue('transaction');
\set VERBOSITY default
SELECT ready FROM jobq.queue_counts('transaction', true);
SELECT count(*) FROM jobq.jobs WHERE job_id = :job;
RESET default_transaction_read_only;
SELECT pg_temp.stands(:job);

-- case 83: PREPARE TRANSACTION after a verb that writes is refused, and nothing of it remains
SHOW max_prepared_transactions \gset
SELECT :max_prepared_transactions > 0 AS may_prepare;
\set VERBOSITY default
BEGIN;
SELECT jobq.enqueue('t', queue => 'transaction') AS prepared \gset
PREPARE TRANSACTION 'jobq';
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY terse
SELECT pg_temp.stands(:prepared);
SELECT jobq.purge_queue('transaction') > 0 AS purged;
SELECT jobq.enqueue('t', queue => 'transaction', job_key => 'prepared') AS job \gset
SELECT attempt FROM jobq.claim('transaction');
\pset tuples_only on
SELECT format('BEGIN; DO $x$ BEGIN PERFORM jobq.%s; END $x$; PREPARE TRANSACTION ''jobq'';',
              replace(call, '$job', '(SELECT job_id FROM jobq.jobs WHERE job_key = ''prepared'')'))
FROM (VALUES
    ('enqueue(''t'', queue => ''transaction'')'),
    ('enqueue_unique(''t'', queue => ''transaction'')'),
    ('enqueue_batch(''t'', ''[1]'', ''transaction'')'),
    ('claim(''transaction'')'),
    ('claim_from(ARRAY[''transaction''])'),
    ('complete_and_claim(''{}'', ''{}'', ''transaction'')'),
    ('renew($job, 1)'),
    ('renew_batch(ARRAY[$job], ARRAY[1])'),
    ('complete($job, 1)'),
    ('complete_batch(ARRAY[$job], ARRAY[1])'),
    ('fail($job, 1, ''error'')'),
    ('snooze($job, 1, ''0'')'),
    ('cancel($job)'),
    ('cancel_key(''transaction'', ''prepared'')'),
    ('retry($job)'),
    ('retry_dead(''transaction'')'),
    ('reschedule($job, ''2099-01-01'')'),
    ('create_queue(''transaction prepared'')'),
    ('alter_queue(''transaction'', ''20 s'')'),
    ('pause_queue(''transaction'')'),
    ('resume_queue(''transaction'')'),
    ('purge_queue(''transaction'')'),
    ('set_group(''transaction'', ''group'', 2)'),
    ('drop_queue(''transaction whole'', true)'),
    ('sweep()')) AS calls (call) \gexec
\pset tuples_only off
SELECT count(*) FROM pg_prepared_xacts;
SELECT pg_temp.stands(:job);
-- also if it was done in a savepoint that is released; a transaction that only read may be prepared
BEGIN;
SAVEPOINT a;
SELECT jobq.cancel(:job);
RELEASE a;
PREPARE TRANSACTION 'jobq';
BEGIN;
SELECT ready FROM jobq.queue_counts('transaction', true);
SELECT count(*) FROM jobq.jobs WHERE job_id = :job;
PREPARE TRANSACTION 'jobq';
ROLLBACK PREPARED 'jobq';
SELECT pg_temp.stands(:job);

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^transaction( |$)';
\o

-- a single statement with a handler inside is no transaction block; a block with a savepoint is one
SET jobq.claim_in_transaction = 'error';
CREATE FUNCTION pg_temp.claims_under_a_handler() RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        PERFORM FROM jobq.claim();
        RETURN 'allowed';
    EXCEPTION WHEN active_sql_transaction THEN
        RETURN 'refused';
    END;
END
$$;
SELECT pg_temp.claims_under_a_handler();
BEGIN;
SAVEPOINT s;
SELECT pg_temp.claims_under_a_handler();
ROLLBACK;
