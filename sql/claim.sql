-- Claim: what a worker is handed, in which order, and what it never is.
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
FROM (SELECT format('delayed, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.delayed WHERE job_id = id
      UNION ALL
      SELECT format('ready, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.ready WHERE job_id = id
      UNION ALL
      SELECT format('running, attempt %s, tries %s, crashes %s', attempt, tries, crashes) FROM jobq.lease WHERE job_id = id
      UNION ALL
      SELECT format('%s, attempt %s, tries %s%s', state, attempt, tries, ', ' || reason) FROM jobq.finished WHERE job_id = id)
     AS lines (line)
$$;

SELECT jobq.create_queue('claim', lease => '50 s', max_attempts => 4, retry_base => '0') AS made;

-- the row that a worker gets
SELECT count(*) FROM jobq.claim('claim');
SELECT jobq.enqueue('task', '{"n": 1}', 'claim', 3, group_key => 'group', headers => '{"h": 1}') AS job \gset
SELECT job_id = :job AS job, attempt, task, payload, queue, group_key, headers, tries, max_attempts, crashes, priority, last_error,
       enqueued_at <= clock_timestamp() AS enqueued,
       lease_expires_at - clock_timestamp() BETWEEN '49 s' AND '50 s' AS lease
FROM jobq.claim('claim');
SELECT pg_temp.stands(:job);
SELECT worker = current_setting('application_name') || ':' || pg_backend_pid() AS worker,
       clock_timestamp() - claimed_at BETWEEN '0' AND '10 s' AS claimed_at, length, expires_at - claimed_at AS lease, replaced_by
FROM jobq.lease WHERE job_id = :job;
SELECT jobq.fail(:job, 1, 'first');
SELECT jobq.fail(job_id, attempt, 'second') FROM jobq.claim('claim');
SELECT attempt, tries, crashes, last_error FROM jobq.claim('claim');
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE job_id = :job;
SELECT retried FROM jobq.sweep();
SELECT attempt, tries, crashes, last_error IS NOT NULL AS has_error, max_attempts FROM jobq.claim('claim');

-- a worker is a label: 63 bytes
SELECT count(jobq.enqueue('t', to_jsonb(n), 'claim')) FROM generate_series(1, 8) AS n;
SELECT payload FROM jobq.claim('claim', 1, repeat('w', 63));
SELECT payload FROM jobq.claim('claim', 1, 'ä ''"\ worker', '24 h');
SELECT payload FROM jobq.claim('claim', 1, NULL, '1 s');
SELECT payload FROM jobq.claim('claim', NULL, NULL, NULL);
SELECT payload FROM jobq.claim(worker => 'by name', queue => 'claim', lease => '1 min', max_jobs => 1);
SELECT CASE WHEN worker ~ ':\d+$' THEN 'by default' ELSE worker END AS worker, length, count(*)
FROM jobq.lease JOIN jobq.job USING (job_id, queue_id)
WHERE task = 't' AND queue_id = (SELECT queue_id FROM jobq.job WHERE job_id = :job)
GROUP BY 1, 2 ORDER BY 1, 2;
SELECT jobq.drop_queue('claim', true);
SELECT jobq.create_queue('claim') AS made;

-- promise 6: claim(n) gives n jobs if there are as many, each once, never more
SELECT jobq.create_queue('claim many') AS made;
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 25000) AS n), 'claim many');
CREATE TEMP TABLE claimed (asked int, turn bigint, job_id bigint, payload int);
DO $$
DECLARE
    size int;
BEGIN
    FOREACH size IN ARRAY ARRAY[1, 2, 3, 7, 9, 10, 11, 12, 15, 16, 17, 31, 32, 33, 49, 50, 51, 63, 64, 65, 99, 100, 101, 127, 128, 129,
                                150, 199, 255, 256, 257, 499, 500, 501, 511, 512, 513, 999, 1000, 1001, 10000] LOOP
        INSERT INTO claimed
        SELECT size, turn, c.job_id, (c.payload)::int
        FROM jobq.claim('claim many', size)
             WITH ORDINALITY AS c (job_id, attempt, task, payload, queue, group_key, headers, tries, max_attempts, crashes, priority,
                                   last_error, enqueued_at, lease_expires_at, turn);
    END LOOP;
END
$$;
SELECT asked, count(*) FROM claimed GROUP BY 1 HAVING count(*) <> asked;
SELECT count(*) = count(DISTINCT job_id) AS each_once, count(*) = max(payload) AS none_passed_over FROM claimed;
-- and gives them in order
SELECT count(*) FROM claimed a JOIN claimed b ON b.asked = a.asked AND b.turn = a.turn + 1 WHERE b.payload <> a.payload + 1;
-- asked for more than there are: what there is
SELECT count(*) FROM jobq.claim('claim many', 10000);
SELECT count(*) FROM jobq.claim('claim many', 10000);
SELECT jobq.drop_queue('claim many', true);

-- the order is (priority, tag, job_id), over priorities in one claim too
SELECT jobq.create_queue('claim order') AS made;
SELECT count(jobq.enqueue('t', to_jsonb(priority * 100 + n), 'claim order', priority))
FROM generate_series(1, 3) AS n, generate_series(9, 0, -1) AS priorities (priority);
SELECT payload FROM jobq.claim('claim order', 2);
SELECT array_agg(payload ORDER BY turn) AS in_turn
FROM jobq.claim('claim order', 10)
     WITH ORDINALITY AS c (job_id, attempt, task, payload, queue, group_key, headers, tries, max_attempts, crashes, priority,
                           last_error, enqueued_at, lease_expires_at, turn);
SELECT array_agg(payload ORDER BY turn) AS in_turn
FROM jobq.claim('claim order', 100)
     WITH ORDINALITY AS c (job_id, attempt, task, payload, queue, group_key, headers, tries, max_attempts, crashes, priority,
                           last_error, enqueued_at, lease_expires_at, turn);
-- what comes back stands behind what was ready before it
SELECT count(jobq.enqueue('t', to_jsonb(n), 'claim order')) FROM generate_series(1, 3) AS n;
SELECT payload, jobq.snooze(job_id, attempt, '0') FROM jobq.claim('claim order');
SELECT payload FROM jobq.claim('claim order', 3);

-- claim_from: the queues in the order given, never more than asked in all
SELECT jobq.create_queue('claim ' || letter) AS made FROM unnest(ARRAY['a', 'b', 'c', 'empty', 'paused']) AS letters (letter);
SELECT count(jobq.enqueue('t', to_jsonb(n), 'claim ' || letter, CASE letter WHEN 'a' THEN 9 ELSE 0 END))
FROM generate_series(1, 4) AS n, unnest(ARRAY['a', 'b', 'c', 'paused']) AS letters (letter);
SELECT jobq.pause_queue('claim paused');
SELECT queue, payload FROM jobq.claim_from(ARRAY['claim empty', 'claim paused', 'claim a', 'claim b'], 6);
SELECT queue, payload FROM jobq.claim_from(ARRAY['claim c', 'claim b', 'claim c'], 1);
SELECT queue, payload FROM jobq.claim_from(ARRAY['claim c', 'claim b', 'claim c'], 100);
SELECT queue, payload FROM jobq.claim_from('[7:8]={claim paused,claim empty}'::text[], 100);
SELECT count(*) FROM jobq.claim_from('{}', 5);
SELECT count(*) FROM jobq.claim_from(ARRAY(SELECT 'claim ' || letter FROM generate_series(1, 200), unnest(ARRAY['a', 'b']) AS letters (letter)), 5);
-- every argument does as it does in claim
SELECT jobq.resume_queue('claim paused');
SELECT queue, payload, lease_expires_at - clock_timestamp() BETWEEN '9 min' AND '10 min' AS lease
FROM jobq.claim_from(max_jobs => 2, queues => ARRAY['claim paused'], lease => '10 min', worker => 'from');
SELECT count(*) FROM jobq.lease WHERE worker = 'from';

-- case 20, 162: a demand that is no demand, and other bad values
\pset format unaligned
\pset tuples_only on
SELECT left(call, 100), pg_temp.outcome(call)
FROM (VALUES
    ('SELECT jobq.claim(''claim'', 0)'),
    ('SELECT jobq.claim(''claim'', -1)'),
    ('SELECT jobq.claim(''claim'', 10001)'),
    ('SELECT jobq.claim(''claim'', 2147483647)'),
    ('SELECT jobq.claim(''claim'', -2147483648)'),
    ('SELECT jobq.claim(''claim'', NULL)'),
    ('SELECT jobq.claim(''claim'', 10000)'),
    ('SELECT jobq.claim('''')'),
    ('SELECT jobq.claim(''sql/10'')'),
    (format('SELECT jobq.claim(%L)', repeat('q', 64))),
    (format('SELECT jobq.claim(%L)', repeat('q', 1000000))),
    (format('SELECT jobq.claim(''claim'', worker => %L)', repeat('w', 64))),
    (format('SELECT jobq.claim(''claim'', worker => %L)', repeat('ä', 32))),
    ('SELECT jobq.claim(''claim'', lease => ''999.999 ms'')'),
    ('SELECT jobq.claim(''claim'', lease => ''0'')'),
    ('SELECT jobq.claim(''claim'', lease => ''-1 s'')'),
    ('SELECT jobq.claim(''claim'', lease => ''24 h 1 us'')'),
    ('SELECT jobq.claim(''claim'', lease => ''1 month'')'),
    ('SELECT jobq.claim(''claim'', lease => ''2 days -47 h'')'),
    ('SELECT jobq.claim(''claim'', lease => ''178000000 years'')'),
    ('SELECT jobq.claim_from(ARRAY[''claim''], 0)'),
    ('SELECT jobq.claim_from(ARRAY[''claim''], 10001)'),
    ('SELECT jobq.claim_from(ARRAY[''claim''], lease => ''1 year'')'),
    ('SELECT jobq.claim_from(ARRAY[''claim'', ''sql/10''])'),
    ('SELECT jobq.claim_from(ARRAY[''claim'', ''''])')) AS calls (call);
\pset format aligned
\pset tuples_only off

-- case 39: a delayed job is not claimed before its time
SELECT jobq.create_queue('claim delayed') AS made;
SELECT jobq.enqueue('t', queue => 'claim delayed', delay => '1 h') AS job \gset
SELECT count(*) FROM jobq.claim('claim delayed');
UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '1 us' WHERE job_id = :job;
SELECT promoted FROM jobq.sweep();
SELECT attempt FROM jobq.claim('claim delayed');

-- case 39: each job of a batch has a lease of its own
SELECT jobq.create_queue('claim leases', retry_base => '0') AS made;
SELECT count(*) FROM jobq.enqueue_batch('t', '[1, 2, 3]', 'claim leases');
SELECT count(*) FROM jobq.claim('claim leases', 3, 'one worker', '30 s');
SELECT jobq.renew(job_id, 1, '1 h') IS NOT NULL AS renewed FROM jobq.job JOIN jobq.lease USING (job_id) WHERE worker = 'one worker' AND payload = '3';
UPDATE jobq.lease SET expires_at = expires_at - interval '31 s' WHERE worker = 'one worker';
SELECT retried FROM jobq.sweep();
SELECT payload, pg_temp.stands(job_id) FROM jobq.job JOIN jobq.jobs USING (job_id) WHERE queue = 'claim leases' ORDER BY payload::int;

-- case 3, 26: two workers of one name hold a lease each, and neither holds the other's
SELECT jobq.create_queue('claim same name', retry_base => '0') AS made;
SELECT count(*) FROM jobq.enqueue_batch('t', '[1, 2]', 'claim same name');
SELECT job_id AS first FROM jobq.claim('claim same name', worker => 'pod-0') \gset
SELECT job_id AS second FROM jobq.claim('claim same name', worker => 'pod-0') \gset
SELECT jobq.renew(:second, 1, '1 h') IS NOT NULL AS renewed;
SELECT job_id = :second AS second, expires_at - clock_timestamp() > '59 min' AS renewed FROM jobq.lease WHERE worker = 'pod-0' ORDER BY job_id;
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE job_id = :first;
SELECT retried FROM jobq.sweep();
SELECT job_id = :first AS first, attempt FROM jobq.claim('claim same name', worker => 'pod-0');
SELECT jobq.complete(:first, 1) AS by_the_dead, jobq.complete(:first, 2) AS by_the_living;

-- case 23, 24: the token of an attempt never comes again, however the attempt ended
SELECT jobq.create_queue('claim tokens', retry_base => '0', max_attempts => 100, max_crashes => 100) AS made;
SELECT jobq.enqueue('t', queue => 'claim tokens') AS job \gset
CREATE FUNCTION pg_temp.refused(id bigint, attempts int[]) RETURNS boolean
LANGUAGE sql AS $$
SELECT bool_and(NOT jobq.complete(id, a) AND jobq.renew(id, a) IS NULL AND jobq.fail(id, a, 'late') IS NULL AND NOT jobq.snooze(id, a, '0'))
       AND (SELECT count(*) = 0 FROM jobq.complete_batch(array_fill(id, ARRAY[cardinality(attempts)]), attempts))
       AND (SELECT count(*) = 0 FROM jobq.renew_batch(array_fill(id, ARRAY[cardinality(attempts)]), attempts))
FROM unnest(attempts) AS a
$$;
SELECT attempt FROM jobq.claim('claim tokens');
SELECT pg_temp.refused(:job, '{0,-1,2,2147483647,-2147483648}');
SELECT jobq.fail(:job, 1, 'error');
SELECT pg_temp.refused(:job, '{0,1,2}');
SELECT attempt FROM jobq.claim('claim tokens');
SELECT pg_temp.refused(:job, '{0,1,3}');
SELECT jobq.snooze(:job, 2, '0');
SELECT attempt FROM jobq.claim('claim tokens');
SELECT pg_temp.refused(:job, '{1,2,4}');
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE job_id = :job;
SELECT retried FROM jobq.sweep();
SELECT attempt FROM jobq.claim('claim tokens');
SELECT pg_temp.refused(:job, '{1,2,3,5}');
SELECT jobq.cancel(:job);
SELECT pg_temp.refused(:job, '{1,2,3,4,5}');
SELECT jobq.retry(:job);
SELECT attempt FROM jobq.claim('claim tokens');
SELECT pg_temp.refused(:job, '{1,2,3,4,6}');
SELECT jobq.fail(:job, 5, 'error', retry => false);
SELECT pg_temp.refused(:job, '{1,2,3,4,5,6}');
SELECT jobq.retry_dead('claim tokens');
SELECT attempt FROM jobq.claim('claim tokens');
SELECT pg_temp.refused(:job, '{1,2,3,4,5,7}');
SELECT jobq.complete(:job, 6);
SELECT pg_temp.refused(:job, '{1,2,3,4,5,6,7}');
SELECT pg_temp.stands(:job), (SELECT count(*) FROM jobq.failures WHERE job_id = :job) AS failures;
-- nor do jobs that never were have a token
SELECT pg_temp.refused(id, '{0,1}') FROM unnest(ARRAY[0, -1, 9223372036854775807, -9223372036854775808]) AS ids (id);

-- promise 2, case 31: jobs without a try left stand first; the healthy behind them are claimed, the exhausted buried
SELECT jobq.create_queue('claim exhausted', retry_base => '0', max_attempts => 3) AS made;
SELECT count(*) FROM jobq.enqueue_batch('exhausted', '[1, 2, 3, 4]', 'claim exhausted', 0);
SELECT count(*) FROM jobq.enqueue_batch('healthy', '[5, 6, 7]', 'claim exhausted', 5);
SELECT jobq.fail(job_id, attempt, 'error') FROM jobq.claim('claim exhausted', 4);
SELECT jobq.fail(job_id, attempt, 'error') FROM jobq.claim('claim exhausted', 4);
SELECT jobq.alter_queue('claim exhausted', max_attempts => 2);
SELECT task, payload, tries, max_attempts FROM jobq.claim('claim exhausted', 3);
SELECT count(*) FROM jobq.claim('claim exhausted', 3);
SELECT task, pg_temp.stands(job_id), count(*) FROM jobq.job
WHERE queue_id = (SELECT queue_id FROM jobq.job JOIN jobq.history USING (job_id) WHERE queue = 'claim exhausted' LIMIT 1)
GROUP BY 1, 2 ORDER BY 1, 2;
SELECT jobq.purge_queue('claim exhausted');
-- the same by crashes
SELECT jobq.alter_queue('claim exhausted', max_attempts => 10);
SELECT count(*) FROM jobq.enqueue_batch('crashed', '[1, 2]', 'claim exhausted', 0);
SELECT count(*) FROM jobq.enqueue_batch('healthy', '[8]', 'claim exhausted', 5);
SELECT count(*) FROM jobq.claim('claim exhausted', 2);
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' FROM jobq.job j WHERE j.job_id = lease.job_id AND task = 'crashed';
SELECT retried FROM jobq.sweep();
SELECT jobq.alter_queue('claim exhausted', max_crashes => 1);
SELECT task, payload FROM jobq.claim('claim exhausted', 1);
SELECT task, pg_temp.stands(job_id), count(*) FROM jobq.job WHERE task = 'crashed' GROUP BY 1, 2 ORDER BY 1, 2;

-- case 159: an attempt that would pass the largest int buries its job, and stops nobody
SELECT jobq.create_queue('claim largest', max_attempts => 2147483647, max_crashes => 2147483647, retry_base => '0') AS made;
SELECT count(*) FROM jobq.enqueue_batch('largest', '[1, 2, 3]', 'claim largest', 0);
SELECT count(*) FROM jobq.enqueue_batch('healthy', '[4]', 'claim largest', 5);
UPDATE jobq.ready SET attempt = CASE payload WHEN '1' THEN 2147483647 WHEN '2' THEN 2147483646 ELSE 5 END,
                      tries = CASE payload WHEN '2' THEN 2147483646 WHEN '3' THEN 2147483647 ELSE 5 END
FROM jobq.job j WHERE j.job_id = ready.job_id AND task = 'largest';
SELECT task, payload, attempt, tries FROM jobq.claim('claim largest', 4);
SELECT count(*) FROM jobq.claim('claim largest', 4);
SELECT payload, jobq.fail(job_id, attempt, 'error') FROM jobq.job JOIN jobq.lease USING (job_id) WHERE task = 'largest';
SELECT payload, attempt FROM jobq.claim('claim largest', 4);
SELECT payload, pg_temp.stands(job_id) FROM jobq.job WHERE task = 'largest' ORDER BY payload;

-- promise 6: a ready row whose job is not there yet (a restore under way) is left, and stops nobody
SELECT jobq.create_queue('claim restored') AS made;
SELECT jobq.enqueue('t', queue => 'claim restored') AS job \gset
INSERT INTO jobq.ready (queue_id, priority, tag, job_id, attempt, tries, crashes)
SELECT queue_id, 0, tag, -job_id, attempt, tries, crashes FROM jobq.ready WHERE job_id = :job;
SELECT job_id = :job AS job, attempt FROM jobq.claim('claim restored', 1);
SELECT count(*) FROM jobq.claim('claim restored', 10);
SELECT pg_temp.stands(-:job);
DELETE FROM jobq.ready WHERE job_id = -:job;
-- so is one whose job runs already (a hand in the tables)
INSERT INTO jobq.ready (queue_id, priority, tag, job_id, attempt, tries, crashes)
SELECT queue_id, 0, 1, job_id, attempt, tries, crashes FROM jobq.lease WHERE job_id = :job;
SELECT jobq.enqueue('behind it', queue => 'claim restored') IS NOT NULL AS enqueued;
SELECT task, attempt FROM jobq.claim('claim restored', 10);
SELECT pg_temp.stands(:job);
DELETE FROM jobq.ready WHERE job_id = :job;

-- case 46: a job for a group or a task that nobody knows is a job
SELECT jobq.enqueue('nobody knows', queue => 'claim restored', group_key => 'gone') AS job \gset
SELECT count(*) FROM jobq.claim('claim restored');
UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE job_id = :job;
SELECT retried, died FROM jobq.sweep();
SELECT pg_temp.stands(:job);

-- case 28: a claim is a whole, however few of its rows are fetched
SELECT jobq.create_queue('claim whole') AS made;
SELECT count(*) FROM jobq.enqueue_batch('t', '[1, 2, 3, 4]', 'claim whole');
SELECT payload FROM jobq.claim('claim whole', 3) LIMIT 1;
EXPLAIN (COSTS off) SELECT payload FROM jobq.claim('claim whole', 3);
SELECT running, ready FROM jobq.queue_counts('claim whole', true);
PREPARE claim (text, int) AS SELECT payload FROM jobq.claim($1, $2);
EXECUTE claim ('claim whole', 10);
EXECUTE claim ('claim whole', 10);
DEALLOCATE claim;

-- promise 6: one that is at its limit but stands among the finished already (a hand in the tables) is passed over
SELECT jobq.create_queue('claim buried', max_attempts => 1) AS made;
SELECT jobq.enqueue('buried', queue => 'claim buried') AS job \gset
UPDATE jobq.ready SET tries = 1 WHERE job_id = :job;
INSERT INTO jobq.finished (job_id, queue_id, ended_at, attempt, tries, state)
SELECT job_id, queue_id, now(), 1, 1, 'dead' FROM jobq.ready WHERE job_id = :job;
SELECT jobq.enqueue('behind it', queue => 'claim buried') IS NOT NULL AS enqueued;
SELECT task FROM jobq.claim('claim buried', 10);
DELETE FROM jobq.finished WHERE job_id = :job;

-- a claim buries a thousand at the most, so that a caller's statement_timeout cannot undo it for ever
SELECT jobq.create_queue('claim many dead', max_attempts => 1) AS made;
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 1500) AS n), 'claim many dead');
UPDATE jobq.ready SET tries = 1 WHERE queue_id = (SELECT queue_id FROM jobq.queue WHERE name = 'claim many dead');
SELECT jobq.enqueue('behind them', queue => 'claim many dead') IS NOT NULL AS enqueued;
SELECT task FROM jobq.claim('claim many dead');
SELECT ready, dead FROM jobq.queue_counts('claim many dead', true);
SELECT task FROM jobq.claim('claim many dead');
SELECT ready, running, dead FROM jobq.queue_counts('claim many dead', true);

-- claim_from checks all names before it claims from the first
SELECT jobq.enqueue('t', queue => 'claim whole') IS NOT NULL AS enqueued;
SELECT count(*) FROM jobq.claim_from(ARRAY['claim whole', 'claim nowhere']);
\echo :LAST_ERROR_SQLSTATE
SELECT ready FROM jobq.queue_counts('claim whole', true);

-- promise 1: each job of this file stands in exactly one line
SELECT count(*) FROM jobq.job JOIN jobq.queue USING (queue_id)
WHERE name LIKE 'claim%' AND pg_temp.stands(job_id) ~ ' AND |nowhere';

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^claim( |$)';
\o
