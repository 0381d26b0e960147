-- What is due fires: once for each instant, by the policies, at instants of the test's choice.
\set VERBOSITY terse
SET client_min_messages = warning;
SET TimeZone = 'UTC';
SET jobq.claim_in_transaction = allow;

SELECT jobq.create_queue('fire');
-- As if nothing had been dealt with after that instant.
CREATE FUNCTION pg_temp.since(schedule text, instant timestamptz) RETURNS void
LANGUAGE sql AS $$
    UPDATE jobq.schedule SET created_at = instant, handled_until = instant, next_run_at = instant WHERE name = $1
$$;
CREATE FUNCTION pg_temp.complete_all() RETURNS bigint
LANGUAGE sql AS $$ SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('fire', 1000) $$;
CREATE FUNCTION pg_temp.clear() RETURNS void
LANGUAGE sql AS $$ DELETE FROM jobq.schedule; DELETE FROM jobq.schedule_run; SELECT pg_temp.complete_all(); SELECT $$;
CREATE FUNCTION pg_temp.is_taken(change text) RETURNS boolean
LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'UPDATE jobq.schedule SET ' || change; RETURN true; EXCEPTION WHEN check_violation THEN RETURN false; END $$;
CREATE VIEW pg_temp.runs AS
SELECT schedule, run_at, until, state, outcome, reason FROM jobq.schedule_runs ORDER BY schedule, run_at;

-- case 1: the timer wakes early, twice, late; the next instant follows from the last one
SELECT jobq.schedule_job('fire minute', '* * * * *', 't', queue => 'fire') IS NOT NULL AS made, pg_temp.since('fire minute', '2026-03-01 00:00');
SELECT at, jobq.fire_schedules(at::timestamptz), (SELECT count(*) FROM jobq.schedule_runs), pg_temp.complete_all()
FROM unnest('{2026-03-01 00:00:59.995,2026-03-01 00:01,2026-03-01 00:01,2026-03-01 00:01:30,2026-03-01 00:02:07,2026-03-01 00:02:59.999,2026-03-01 00:03:00.001}'::text[]) AS at;
TABLE pg_temp.runs;
SELECT next_run_at FROM jobq.schedules;
-- the key stands behind it
INSERT INTO jobq.schedule_run SELECT * FROM jobq.schedule_run ORDER BY run_at LIMIT 1;

-- case 18: overlapping instants by policy, with no job that ends, then with one
SELECT pg_temp.clear();
SELECT jobq.schedule_job('fire ' || overlap, '* * * * *', overlap, queue => 'fire', overlap => overlap) IS NOT NULL AS made, pg_temp.since('fire ' || overlap, '2026-03-02 00:00')
FROM unnest('{skip,queue,allow}'::text[]) AS overlap;
DO $$ BEGIN FOR minute IN 1 .. 4 LOOP PERFORM jobq.fire_schedules('2026-03-02 00:00'::timestamptz + minute * interval '1 min'); END LOOP; END $$;
SELECT schedule, run_at::time, state, regexp_replace(reason, 'job \d+', 'job N') AS reason FROM pg_temp.runs WHERE schedule <> 'fire minute';
SELECT task, count(*) FROM jobq.jobs GROUP BY 1 ORDER BY 1;
SELECT pg_temp.complete_all();
SELECT jobq.fire_schedules('2026-03-02 00:04:30');
SELECT task, count(*) FROM jobq.jobs GROUP BY 1 ORDER BY 1;
SELECT schedule, run_at::time, state, outcome FROM pg_temp.runs WHERE schedule = 'fire queue';
-- what waits goes with its schedule
DO $$ BEGIN PERFORM jobq.fire_schedules('2026-03-02 00:05'); END $$;
SELECT run_at::time, state FROM pg_temp.runs WHERE schedule = 'fire queue' AND run_at >= '2026-03-02 00:05';
SELECT jobq.unschedule('fire queue');
SELECT pg_temp.complete_all() > 0 AS some;
SELECT jobq.fire_schedules('2026-03-02 00:05:30');
SELECT run_at::time, state, reason FROM pg_temp.runs WHERE schedule = 'fire queue' AND run_at BETWEEN '2026-03-02 00:05' AND '2026-03-02 00:06';
SELECT count(*) FROM jobq.jobs WHERE task = 'queue';
SELECT pg_temp.clear();

-- cases 4, 11: what the server was away for, by policy; what is not late fires in any case
SELECT jobq.schedule_job('fire ' || catch_up, '* * * * *', catch_up, queue => 'fire', overlap => 'allow', catch_up => catch_up) IS NOT NULL AS made, pg_temp.since('fire ' || catch_up, '2026-03-03 00:00')
FROM unnest('{none,once,all}'::text[]) AS catch_up;
SELECT jobq.fire_schedules('2026-03-03 00:03:02', undisturbed_since => '2026-03-03 00:02:30');
SELECT schedule, run_at::time, state, reason FROM pg_temp.runs ;
SELECT schedule, next_run_at FROM jobq.schedules ORDER BY 1;
-- three days later: a hundred are told one by one, those before in one row
SELECT jobq.fire_schedules('2026-03-06 00:00:20', undisturbed_since => '2026-03-06 00:00:10');
SELECT schedule, state, count(*), min(run_at), max(run_at), max(until) AS until FROM pg_temp.runs WHERE run_at > '2026-03-03 00:03' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT task, count(*) FROM jobq.jobs GROUP BY 1 ORDER BY 1;
SELECT schedule, next_run_at FROM jobq.schedules ORDER BY 1;
-- nothing came in time, though nothing was disturbed: somebody stood still (case 166)
SELECT jobq.fire_schedules('2026-03-06 00:01:11');
SELECT schedule, run_at::time, state, reason FROM pg_temp.runs WHERE run_at > '2026-03-06 00:00:30';

-- cases 6, 12: the clock falls back; what fired does not fire again, what was missed does
SELECT jobq.fire_schedules('2026-03-06 00:00:40');
SELECT schedule, run_at::time, state FROM pg_temp.runs WHERE run_at > '2026-03-06 00:00:30';
SELECT schedule, next_run_at FROM jobq.schedules ORDER BY 1;
SELECT jobq.fire_schedules('2026-03-06 00:01:01');
SELECT schedule, run_at::time, state FROM pg_temp.runs WHERE run_at > '2026-03-06 00:00:30';
-- also within a row that stands for many
SELECT jobq.fire_schedules('2026-03-04 12:00:00');
SELECT schedule, run_at, until FROM pg_temp.runs WHERE until IS NOT NULL;
SELECT pg_temp.clear();

-- case 17: another zone or expression counts from the change, once; what was due by then is missed
SELECT jobq.schedule_job('fire zone', '@daily', 'zone', queue => 'fire') IS NOT NULL AS made;
UPDATE jobq.schedule SET handled_until = date_trunc('day', clock_timestamp(), 'UTC') - interval '1 us', next_run_at = date_trunc('day', clock_timestamp(), 'UTC');
SELECT jobq.alter_schedule('fire zone', timezone => 'Pacific/Kiritimati');
SELECT state, reason FROM pg_temp.runs WHERE schedule = 'fire zone';
SELECT next_run_at > clock_timestamp() AS is_ahead, (next_run_at AT TIME ZONE timezone)::time FROM jobq.schedules;
-- what does not change the time does not touch the chain
UPDATE jobq.schedule SET handled_until = clock_timestamp() - interval '5 min', next_run_at = clock_timestamp() - interval '1 min';
SELECT jobq.alter_schedule('fire zone', priority => 3);
SELECT jobq.schedule_job('fire zone', '@daily', 'zone', queue => 'fire', timezone => 'Pacific/Kiritimati') IS NOT NULL AS made;
SELECT clock_timestamp() - handled_until > interval '4 min' AS is_where_it_was, next_run_at > clock_timestamp() AS is_reckoned FROM jobq.schedule;
SELECT pg_temp.clear();

-- one bad schedule stops with its reason, all others fire (case 14: also what was written by hand)
SELECT jobq.create_queue('fire gone');
SELECT jobq.schedule_job('fire bad ' || bad, '* * * * *', 't', queue => CASE bad WHEN 'queue' THEN 'fire gone' ELSE 'fire' END) IS NOT NULL AS made, pg_temp.since('fire bad ' || bad, '2026-03-07 00:00')
FROM unnest('{date,good,owner,queue,text,zone}'::text[]) AS bad;
SELECT jobq.drop_queue('fire gone');
UPDATE jobq.schedule SET timezone = 'Mars/Olympus' WHERE name = 'fire bad zone';
UPDATE jobq.schedule SET expression = 'now and then' WHERE name = 'fire bad text';
UPDATE jobq.schedule SET expression = '0 0 30 2 *' WHERE name = 'fire bad date';
UPDATE jobq.schedule SET owner_oid = 1, owner_name = 'fire_nobody' WHERE name = 'fire bad owner';
-- what cannot be read can still be removed
SELECT jobq.schedule_job('fire bad removed', '* * * * *', 't') IS NOT NULL AS made, pg_temp.since('fire bad removed', '2026-03-07 00:00');
UPDATE jobq.schedule SET timezone = 'Mars/Olympus' WHERE name = 'fire bad removed';
SELECT jobq.unschedule('fire bad removed');
SELECT jobq.fire_schedules('2026-03-07 00:01');
SELECT schedule, state, reason, next_run_at FROM jobq.schedules ORDER BY 1;
SELECT schedule, run_at::time, state, reason FROM pg_temp.runs WHERE run_at >= '2026-03-07' ORDER BY 1, 2;
SELECT ok, message FROM jobq.health() WHERE check_name = 'schedules';
SELECT jobq.fire_schedules('2026-03-07 00:02');
SELECT count(*) FROM pg_temp.runs WHERE run_at >= '2026-03-07';
-- whatever was due when it stopped is missed for its reason, many of them in one row
SELECT jobq.schedule_job('fire stop ' || bad, '* * * * *', 't', queue => 'fire') IS NOT NULL AS made, pg_temp.since('fire stop ' || bad, '2026-03-10 00:00') FROM unnest('{long,short}'::text[]) AS bad;
UPDATE jobq.schedule SET queue = 'fire gone' WHERE name LIKE 'fire stop %';
UPDATE jobq.schedule SET handled_until = '2026-03-09 00:00', next_run_at = '2026-03-09 00:01' WHERE name = 'fire stop long';
SELECT jobq.fire_schedules('2026-03-10 00:03:05', undisturbed_since => '2026-03-10 00:02:30');
SELECT schedule, state, count(*), min(run_at), max(run_at), max(until) AS until, min(reason) AS reason FROM pg_temp.runs WHERE schedule LIKE 'fire stop %' GROUP BY 1, 2 ORDER BY 1;
SELECT jobq.unschedule(schedule) FROM jobq.schedules WHERE schedule LIKE 'fire stop %';
-- what no enqueue would take is not written
SELECT count(*) AS accepted FROM unnest(ARRAY['priority = 10', 'priority = -1', 'jitter = -1', 'max_attempts = 0', 'max_crashes = 0', 'task = ''''', 'task = repeat(''x'', 64)', 'name = ''''',
    'group_key = repeat(''x'', 256)', 'overlap = ''maybe''', 'catch_up = ''some''']) AS change WHERE pg_temp.is_taken(change);
-- mended, it goes on; whoever resumes a schedule of nobody owns it
SELECT jobq.create_queue('fire gone');
SELECT jobq.resume_schedule('fire bad queue'), jobq.resume_schedule('fire bad owner');
SELECT jobq.resume_schedule('fire bad zone');
SELECT jobq.alter_schedule('fire bad zone', timezone => 'UTC');
SELECT schedule, state, owner FROM jobq.schedules ORDER BY 1;
-- case 51: instants that are none
UPDATE jobq.schedule SET next_run_at = 'infinity' WHERE name = 'fire bad good';
UPDATE jobq.schedule SET handled_until = '-infinity', next_run_at = '-infinity' WHERE name = 'fire bad zone';
UPDATE jobq.schedule SET handled_until = 'infinity', next_run_at = NULL WHERE name = 'fire bad owner';
DO $$ BEGIN PERFORM jobq.fire_schedules(); END $$;
SELECT schedule, state, next_run_at BETWEEN clock_timestamp() AND clock_timestamp() + '61 s' AS is_next FROM jobq.schedules WHERE state = 'active' ORDER BY 1;
SELECT jobq.drop_queue('fire gone', force => true), pg_temp.clear();

-- the job is the one that the schedule describes; both bounds are instants of it; jitter puts off the job, not the instant
SELECT jobq.schedule_job('fire job', '* * * * *', 'job', '{"a": 1}', 'fire', overlap => 'allow', catch_up => 'all', starts_at => '2090-01-01 00:01', ends_at => '2090-01-01 00:03',
    jitter => '10 min', priority => 2, max_attempts => 4, max_crashes => 5, group_key => 'g', headers => '{"h": 1}') IS NOT NULL AS made;
SELECT minute, jobq.fire_schedules('2090-01-01'::timestamptz + minute * interval '1 min') FROM generate_series(0, 4) AS minute;
SELECT r.run_at::time, j.run_at BETWEEN r.run_at AND r.run_at + interval '10 min' AS is_within, job.payload, job.priority, job.max_attempts, job.max_crashes, job.group_key, job.headers
FROM jobq.schedule_runs r JOIN jobq.jobs j USING (job_id) JOIN jobq.job USING (job_id) WHERE schedule = 'fire job' ORDER BY 1;
SELECT schedule, state, next_run_at FROM jobq.schedules;
SELECT jobq.fire_schedules('2090-01-02');
SELECT count(*) FROM jobq.schedule_runs WHERE schedule = 'fire job';
SELECT pg_temp.clear();

-- an interval keeps its grid: over a timer that wakes late, over words that do not change it, from starts_at on
SELECT jobq.schedule_job('fire interval', '90 minutes', 't', queue => 'fire', overlap => 'allow', starts_at => '2090-01-01 00:00:07') IS NOT NULL AS made;
SELECT jobq.fire_schedules('2090-01-01 00:00:09'), jobq.fire_schedules('2090-01-01 01:30:16.9'), jobq.fire_schedules('2090-01-01 04:00:00');
SELECT jobq.alter_schedule('fire interval', task => 'other');
SELECT jobq.fire_schedules('2090-01-01 04:30:07');
SELECT run_at::time, state FROM pg_temp.runs WHERE schedule = 'fire interval';
SELECT pg_temp.clear();

-- @reboot: once for each start of the server, whoever looks
SELECT jobq.schedule_job('fire reboot', '@reboot', 't', queue => 'fire') IS NOT NULL AS made, jobq.fire_schedules();
SELECT count(*) FROM pg_temp.runs WHERE schedule = 'fire reboot';
UPDATE jobq.schedule SET handled_until = handled_until - interval '1 hour';
DO $$ BEGIN PERFORM jobq.fire_schedules(), jobq.fire_schedules(); END $$;
SELECT run_at = pg_postmaster_start_time() AS is_start, state, (SELECT state FROM jobq.schedules) FROM pg_temp.runs WHERE schedule = 'fire reboot';
SELECT jobq.alter_schedule('fire reboot', '@hourly'), jobq.alter_schedule('fire reboot', '@reboot');
DO $$ BEGIN PERFORM jobq.fire_schedules(); END $$;
SELECT count(*) FROM pg_temp.runs WHERE schedule = 'fire reboot';
SELECT pg_temp.clear();

-- a start before its starts_at, or after its ends_at, is none of its instants; white space around the word is nothing
SELECT jobq.schedule_job('fire reboot ' || bound, E'\t@Reboot\n', bound, queue => 'fire', starts_at => CASE bound WHEN 'early' THEN '2098-01-01'::timestamptz END,
    ends_at => CASE bound WHEN 'late' THEN '2098-01-01'::timestamptz END) IS NOT NULL AS made FROM unnest('{early,late,in}'::text[]) AS bound;
UPDATE jobq.schedule SET handled_until = handled_until - interval '1 hour';
UPDATE jobq.schedule SET ends_at = '2026-01-01' WHERE name = 'fire reboot late';
DO $$ BEGIN PERFORM jobq.fire_schedules(); END $$;
SELECT schedule, state, (SELECT count(*) FROM jobq.schedule_runs r WHERE r.schedule = s.schedule) AS runs FROM jobq.schedules s ORDER BY 1;
SELECT jobq.schedule_job('fire reboot', '@reboot', 't', ends_at => '2026-01-01');
SELECT pg_temp.clear();

-- the clock falls back while one waits: it waits on, and is made once
SELECT jobq.schedule_job('fire back', '* * * * *', 't', queue => 'fire', overlap => 'queue') IS NOT NULL AS made, pg_temp.since('fire back', '2026-03-08 00:00');
DO $$ BEGIN PERFORM jobq.fire_schedules(at) FROM unnest('{2026-03-08 00:01,2026-03-08 00:02,2026-03-08 00:01:30,2026-03-08 00:02}'::timestamptz[]) AS at; END $$;
SELECT run_at::time, state FROM pg_temp.runs WHERE schedule = 'fire back';
SELECT pg_temp.complete_all();
DO $$ BEGIN PERFORM jobq.fire_schedules(at) FROM unnest('{2026-03-08 00:02:10,2026-03-08 00:01:30,2026-03-08 00:02:20}'::timestamptz[]) AS at; END $$;
SELECT run_at::time, state, outcome FROM pg_temp.runs WHERE schedule = 'fire back';
SELECT pg_temp.clear();

-- the clock falls back, and then the server is away for long: what fired keeps its row, the others have theirs
SELECT jobq.schedule_job('fire back', '* * * * *', 't', queue => 'fire', overlap => 'allow') IS NOT NULL AS made, pg_temp.since('fire back', '2026-03-08 00:00');
DO $$ BEGIN PERFORM jobq.fire_schedules(at) FROM unnest('{2026-03-08 00:01,2026-03-08 00:02,2026-03-08 00:00:30}'::timestamptz[]) AS at; END $$;
SELECT jobq.fire_schedules('2026-03-09 00:00', undisturbed_since => '2026-03-09 00:00');
SELECT state, count(*), min(run_at), max(run_at), max(until) AS until FROM pg_temp.runs WHERE schedule = 'fire back' GROUP BY 1 ORDER BY 1;
SELECT pg_temp.clear();

-- what was missed by a clock that was ahead is still to come for a schedule that begins anew
SELECT jobq.schedule_job('fire ' || verb, '* * * * *', 't', queue => 'fire') IS NOT NULL AS made FROM unnest('{alter,make,resume}'::text[]) AS verb;
UPDATE jobq.schedule SET queue = 'fire gone', handled_until = '2090-01-01 00:00', next_run_at = '2090-01-01 00:01';
DO $$ BEGIN PERFORM jobq.fire_schedules('2090-01-01 00:01'); END $$;
SELECT schedule, run_at, state, reason FROM pg_temp.runs WHERE schedule IN ('fire alter', 'fire make', 'fire resume');
UPDATE jobq.schedule SET queue = 'fire';
SELECT jobq.alter_schedule('fire alter'), jobq.schedule_job('fire make', '* * * * *', 't', queue => 'fire') IS NOT NULL AS made, jobq.resume_schedule('fire resume');
SELECT schedule, run_at, state, reason FROM pg_temp.runs WHERE schedule IN ('fire alter', 'fire make', 'fire resume');
SELECT schedule, state, next_run_at BETWEEN clock_timestamp() AND clock_timestamp() + '61 s' AS is_next FROM jobq.schedules ORDER BY 1;
SELECT pg_temp.clear();

-- how long what became of an instant is told: a day at least, what was missed as long as the queue keeps the dead
SELECT jobq.create_queue('fire short', keep_completed => '0', keep_dead => '3 days'), jobq.create_queue('fire ever', keep_completed => '1000 years', keep_dead => '1000 years');
SELECT jobq.schedule_job(queue, '* * * * *', 't', queue => queue, catch_up => 'none') IS NOT NULL AS made, pg_temp.since(queue, '2026-03-09 00:00') FROM unnest('{fire ever,fire short}'::text[]) AS queue;
DO $$ BEGIN PERFORM jobq.fire_schedules('2026-03-09 00:02:05', undisturbed_since => '2026-03-09 00:01:30'), jobq.fire_schedules('2026-03-09 00:03'); END $$;
SELECT name, state, prune_at - noted_at AS keep FROM jobq.schedule_run WHERE name IN ('fire ever', 'fire short') ORDER BY 1, run_at;
SELECT jobq.drop_queue('fire short', force => true), jobq.drop_queue('fire ever', force => true), pg_temp.clear();

-- a year in three zones: every instant once, as next_runs says
CREATE TEMP TABLE year AS
SELECT 'fire ' || zone AS schedule, zone, expression FROM unnest('{UTC,America/New_York,Australia/Lord_Howe}'::text[]) AS zone,
    unnest('{30 2 * * *,*/15 1-3 * * sun,0 */6 L * *}'::text[]) AS expression;
UPDATE year SET schedule = schedule || ' ' || expression;
DO $$ BEGIN
    PERFORM jobq.schedule_job(schedule, expression, 'year', queue => 'fire', timezone => zone, overlap => 'allow', catch_up => 'all') FROM year;
    PERFORM pg_temp.since(schedule, '2027-01-01 00:00') FROM year;
    FOR hour IN 1 .. 365 * 8 LOOP
        PERFORM jobq.fire_schedules('2027-01-01 00:00'::timestamptz + hour * interval '3 hours');
        IF hour % 100 = 0 THEN PERFORM pg_temp.complete_all(); END IF;
    END LOOP;
END $$;
SELECT schedule, count(*), count(DISTINCT run_at), count(*) FILTER (WHERE state = 'enqueued') AS enqueued FROM jobq.schedule_runs JOIN year USING (schedule) GROUP BY 1 ORDER BY 1;
SELECT schedule, r FROM year, jobq.next_runs(expression, 1000, zone, '2027-01-01 00:00') AS r WHERE r <= '2028-01-01 00:00'
EXCEPT SELECT schedule, run_at FROM jobq.schedule_runs;
SELECT pg_temp.clear();
SELECT jobq.drop_queue('fire', force => true);
DROP VIEW pg_temp.runs;
