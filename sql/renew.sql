-- Renew: a worker that is alive keeps its lease; one that is late learns it.
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

SELECT jobq.create_queue('renew', lease => '10 s', retry_base => '0', max_attempts => 100, max_crashes => 100) AS made;
SELECT jobq.enqueue('t', queue => 'renew') AS job \gset
SELECT attempt, lease_expires_at - clock_timestamp() BETWEEN '9 s' AND '10 s' AS lease FROM jobq.claim('renew');

-- case 38: a job longer than its lease is never swept while its worker renews
UPDATE jobq.lease SET expires_at = clock_timestamp() + interval '1 s' WHERE job_id = :job;
SELECT claimed_at AS claimed FROM jobq.lease WHERE job_id = :job \gset
SELECT jobq.renew(:job, 1) - clock_timestamp() BETWEEN '9 s' AND '10 s' AS renewed;
SELECT died, retried FROM jobq.sweep();
SELECT attempt, tries, crashes, length, expires_at - clock_timestamp() BETWEEN '9 s' AND '10 s' AS renewed,
       claimed_at = :'claimed' AS claimed_at_stays
FROM jobq.lease WHERE job_id = :job;

-- a length that is given replaces the lease's own, longer or shorter
SELECT jobq.renew(:job, 1, '1 h') - clock_timestamp() BETWEEN '59 min' AND '1 h' AS renewed;
SELECT jobq.renew(:job, 1) - clock_timestamp() BETWEEN '59 min' AND '1 h' AS renewed;
SELECT jobq.renew(:job, 1, NULL) - clock_timestamp() BETWEEN '59 min' AND '1 h' AS renewed;
SELECT jobq.renew(job_id => :job, attempt => 1, lease => '1 s') - clock_timestamp() BETWEEN '0' AND '1 s' AS shortened;
SELECT length FROM jobq.lease WHERE job_id = :job;
SELECT jobq.renew(:job, 1, '24 h') - clock_timestamp() BETWEEN '23 h' AND '24 h' AS renewed;
-- the queue's setting plays no part in it
SELECT jobq.alter_queue('renew', lease => '2 min');
SELECT jobq.renew(:job, 1) - clock_timestamp() BETWEEN '23 h' AND '24 h' AS renewed;
-- a length of its own from the claim
SELECT jobq.enqueue('t', queue => 'renew') AS other \gset
SELECT attempt FROM jobq.claim('renew', lease => '30 s');
SELECT jobq.renew(:other, 1) - clock_timestamp() BETWEEN '29 s' AND '30 s' AS renewed;
SELECT jobq.cancel(:other);

-- promise 3: another attempt, another job: NULL, and nothing changes
SELECT jobq.renew(:job, attempt) FROM unnest(ARRAY[0, 2, -1, 2147483647, -2147483648]) AS attempts (attempt);
SELECT jobq.renew(0, 1), jobq.renew(-1, 1), jobq.renew(9223372036854775807, 1);
SELECT attempt, length FROM jobq.lease WHERE job_id = :job;

-- promise 4, case 24: expired but not swept, the lease is still its worker's
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 h' WHERE job_id = :job;
SELECT jobq.renew(:job, 1, '1 min') > clock_timestamp() AS renewed;
SELECT died, retried FROM jobq.sweep();
-- swept: lost
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 h' WHERE job_id = :job;
SELECT retried FROM jobq.sweep();
SELECT jobq.renew(:job, 1);
-- claimed again by a worker of the same name: lost to the first, held by the second
SELECT attempt FROM jobq.claim('renew', worker => current_setting('application_name') || ':' || pg_backend_pid());
SELECT jobq.renew(:job, 1) IS NULL AS lost, jobq.renew(:job, 2) IS NOT NULL AS held;
-- cancelled, snoozed, failed, completed: lost
SELECT jobq.snooze(:job, 2, '0'), jobq.renew(:job, 2);
SELECT attempt FROM jobq.claim('renew');
SELECT jobq.fail(:job, 3, 'error'), jobq.renew(:job, 3);
SELECT attempt FROM jobq.claim('renew');
SELECT jobq.cancel(:job), jobq.renew(:job, 4);
SELECT jobq.retry(:job);
SELECT attempt FROM jobq.claim('renew');
SELECT jobq.complete(:job, 5), jobq.renew(:job, 5);

-- case 163: the lease begins at the clock's time, not at the transaction's
SELECT jobq.enqueue('t', queue => 'renew') AS job \gset
SET jobq.claim_in_transaction = 'allow';
BEGIN;
SELECT pg_sleep(0.005);
SELECT lease_expires_at - now() >= interval '1.005 s' AS claimed FROM jobq.claim('renew', lease => '1 s');
SELECT jobq.renew(:job, 1, '1 s') - now() >= interval '1.005 s' AS renewed;
COMMIT;
RESET jobq.claim_in_transaction;

-- case 157: lengths out of bounds; the lease stays as it was
\pset format unaligned
\pset tuples_only on
SELECT length, pg_temp.outcome(format('SELECT jobq.renew(%s, 1, %L)', :job, length)),
       pg_temp.outcome(format('SELECT jobq.renew_batch(ARRAY[%s], ARRAY[1], %L)', :job, length))
FROM unnest(ARRAY['0', '-1 s', '999999 us', '24 h 1 us', '1 mon', '1 mon -29 days', '-1 days 48 h', '178000000 years']) AS lengths (length);
\pset format aligned
\pset tuples_only off
SELECT length FROM jobq.lease WHERE job_id = :job;
SELECT jobq.complete(:job, 1);

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^renew( |$)';
\o
