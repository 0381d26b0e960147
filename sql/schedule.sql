-- Schedules as their owners want them: made, changed, paused, run, removed. Nothing fires here: see fire.
\set VERBOSITY terse
SET client_min_messages = warning;
SET TimeZone = 'UTC';

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
CREATE ROLE schedule_ann IN ROLE jobq_scheduler;
CREATE ROLE "schedule ""Bob""" IN ROLE jobq_scheduler;
CREATE ROLE schedule_admin IN ROLE jobq_admin;
CREATE ROLE schedule_nobody;
SELECT jobq.create_queue('schedule');

-- with every parameter, and with none
SELECT jobq.schedule_job('schedule all', '0 9 * * mon-fri', 'report', '{"a": 1}', 'schedule', 'europe/berlin', 'queue', 'all', '2026-01-01', '2099-01-01', '5 min', 1, 3, 2,
    'tenant', '{"h": 1}') IS NOT NULL AS made;
SELECT jobq.schedule_job('schedule default', '@hourly', 'tidy') IS NOT NULL AS made;
\x on
SELECT schedule, expression, timezone, state, reason, next_run_at > clock_timestamp() AS is_ahead, lag, last_run_at, last_outcome, overlap, catch_up, starts_at, ends_at, jitter, owner, task,
    payload, queue, priority, max_attempts, max_crashes, group_key, headers
FROM jobq.schedules WHERE schedule LIKE 'schedule %' ORDER BY schedule;
\x off

-- NULL leaves what is there; infinity takes the bounds away
SELECT jobq.alter_schedule('schedule all');
SELECT expression, timezone, priority, jitter, starts_at, ends_at FROM jobq.schedules WHERE schedule = 'schedule all';
SELECT jobq.alter_schedule('schedule all', 'every 5 minutes');
SELECT jobq.alter_schedule('schedule all', '*/10 * * * *', timezone => 'Asia/Kathmandu', starts_at => '-infinity', ends_at => 'infinity', payload => '[]', priority => 9);
SELECT schedules.expression, schedules.timezone, schedules.priority, schedules.jitter, schedules.starts_at, schedules.ends_at, schedules.payload, s.next_run_at = r AS is_next
FROM jobq.schedules JOIN jobq.schedule s ON s.name = schedule, jobq.next_runs('*/10 * * * *', 1, 'Asia/Kathmandu', s.handled_until) AS r WHERE schedule = 'schedule all';

-- case 68: the same role changes its schedule by its name, another one does not
SET ROLE schedule_ann;
SELECT jobq.schedule_job('schedule ann', '30 seconds', 'ann') AS ann \gset
SELECT next_run_at AS ann_next FROM jobq.schedules WHERE schedule = 'schedule ann' \gset
SELECT jobq.schedule_job('schedule ann', '30 seconds', 'ann again', priority => 2) = :ann AS is_the_same;
SELECT task, priority, next_run_at = :'ann_next' AS goes_on FROM jobq.schedules WHERE schedule = 'schedule ann';
SET ROLE "schedule ""Bob""";
SELECT pg_temp.outcome($$SELECT jobq.schedule_job('schedule ann', '@daily', 'bob')$$);
SET ROLE schedule_admin;
SELECT pg_temp.outcome($$SELECT jobq.schedule_job('schedule ann', '@daily', 'admin')$$);
RESET ROLE;
SELECT pg_temp.outcome($$SELECT jobq.schedule_job('schedule ann', '@daily', 'superuser')$$);

-- cases 141, 148: a role sees and changes its own, an administrator all
CREATE FUNCTION pg_temp.tries() RETURNS TABLE (call text, outcome text) LANGUAGE sql AS $$
    SELECT call, regexp_replace(pg_temp.outcome('SELECT jobq.' || call), '[0-9]+ has', 'N has')
    FROM unnest(ARRAY[$q$alter_schedule('schedule ann', priority => 3)$q$, $q$pause_schedule('schedule ann')$q$, $q$resume_schedule('schedule ann')$q$, $q$run_schedule('schedule ann')$q$,
        $q$unschedule('schedule ann')$q$]) AS call
$$;
SET ROLE "schedule ""Bob""";
SELECT count(*) FROM jobq.schedules;
SELECT count(*) FROM jobq.schedule_runs;
SELECT * FROM pg_temp.tries();
-- nor does a function of its own see more
CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE WARNING 'leaked %', $1; RETURN true; END $$;
SELECT count(*) FROM jobq.schedules WHERE pg_temp.leak(schedule);
SELECT count(*) FROM jobq.schedule_runs WHERE pg_temp.leak(schedule);
DROP FUNCTION pg_temp.leak;
SET ROLE schedule_nobody;
SELECT * FROM pg_temp.tries();
SELECT count(*) FROM jobq.schedules;
SET ROLE schedule_ann;
SELECT schedule, owner FROM jobq.schedules;
SELECT * FROM pg_temp.tries();
SELECT schedule, state, reason, outcome FROM jobq.schedule_runs;
SELECT jobq.schedule_job('schedule ann', '30 seconds', 'ann') <> :ann AS is_another;
SET ROLE schedule_admin;
SELECT schedule, owner FROM jobq.schedules WHERE schedule LIKE 'schedule %' ORDER BY 1;
SELECT jobq.alter_schedule('schedule ann', priority => 7);
SELECT owner, priority FROM jobq.schedules WHERE schedule = 'schedule ann';
RESET ROLE;

-- pause and resume: nothing is due in between; run_schedule works in any case
SELECT jobq.pause_schedule('schedule default');
SELECT state, next_run_at FROM jobq.schedules WHERE schedule = 'schedule default';
SELECT jobq.pause_schedule('schedule default');
SELECT jobq.run_schedule('schedule default') IS NOT NULL AS runs;
SELECT pg_temp.outcome($$SELECT jobq.run_schedule('schedule default')$$) ~ '55000 .* has a live job: job [0-9]+ has not ended' AS is_live;
SELECT jobq.resume_schedule('schedule default');
SELECT jobq.resume_schedule('schedule default');
SELECT state, next_run_at > clock_timestamp() AS is_ahead, last_outcome FROM jobq.schedules WHERE schedule = 'schedule default';
SELECT job_key, task FROM jobq.jobs WHERE task = 'tidy';

-- the jobs' keys are the schedules'
SELECT pg_temp.outcome($$SELECT jobq.enqueue('t', job_key => 'schedule/x')$$);
SELECT jobq.cancel_key('default', 'schedule/schedule default');
SELECT last_outcome FROM jobq.schedules WHERE schedule = 'schedule default';

-- @reboot has no next instant and is active; what has none any more is over
SELECT jobq.schedule_job('schedule boot', '@reboot', 'boot') IS NOT NULL AS made;
SELECT jobq.schedule_job('schedule short', '@daily', 'short', ends_at => clock_timestamp() + '2 days') IS NOT NULL AS made;
SELECT jobq.alter_schedule('schedule short', ends_at => '2026-01-01');
SELECT schedule, state, next_run_at FROM jobq.schedules WHERE schedule IN ('schedule boot', 'schedule short') ORDER BY 1;
SELECT jobq.alter_schedule('schedule short', ends_at => 'infinity');
SELECT state, next_run_at > clock_timestamp() AS is_ahead FROM jobq.schedules WHERE schedule = 'schedule short';
SELECT jobq.schedule_job('schedule later', '1 hour', 'later', starts_at => '2098-01-01 00:30') IS NOT NULL AS made;
SELECT next_run_at FROM jobq.schedules WHERE schedule = 'schedule later';

-- what is refused, and with which word
\pset format unaligned
\pset tuples_only on
SELECT call, pg_temp.outcome('SELECT jobq.' || call)
FROM unnest(ARRAY[
    $$schedule_job(NULL, '@daily', 't')$$, $$schedule_job('n', NULL, 't')$$, $$schedule_job('n', '@daily', NULL)$$, $$schedule_job('', '@daily', 't')$$,
    $$schedule_job(repeat('x', 64), '@daily', 't')$$, $$schedule_job('n', '0 0 30 2 *', 't')$$, $$schedule_job('n', '@daily', '')$$, $$schedule_job('n', '@daily', 't', timezone => 'CST')$$,
    $$schedule_job('n', '@daily', 't', overlap => 'maybe')$$, $$schedule_job('n', '@daily', 't', catch_up => 'some')$$, $$schedule_job('n', '@daily', 't', queue => 'missing')$$,
    $$schedule_job('n', '@daily', 't', queue => 'sql/1')$$, $$schedule_job('n', '@daily', 't', priority => 10)$$, $$schedule_job('n', '@daily', 't', jitter => '-1 s')$$,
    $$schedule_job('n', '@daily', 't', jitter => '1 month')$$, $$schedule_job('n', '@daily', 't', max_attempts => 0)$$, $$schedule_job('n', '@daily', 't', ends_at => '2020-01-01')$$,
    $$schedule_job('n', '@daily', 't', starts_at => 'infinity')$$, $$schedule_job('n', '@daily', 't', ends_at => '-infinity')$$, $$schedule_job('n', '@daily', 't', starts_at => '2099-01-02', ends_at => '2099-01-01')$$,
    $$alter_schedule('missing')$$, $$alter_schedule(NULL)$$, $$pause_schedule('missing')$$, $$resume_schedule('missing')$$, $$run_schedule('missing')$$, $$unschedule(NULL)$$]) AS call;
SELECT count(*) FROM jobq.schedules WHERE schedule = 'n';
\pset format aligned
\pset tuples_only off

-- a security-restricted operation makes no schedule in somebody's name
CREATE FUNCTION public.schedule_sneak(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM jobq.schedule_job('schedule sneak', '@daily', 't'); RETURN 1; END $$;
CREATE TABLE public.schedule_bait AS SELECT 1 AS a;
SELECT pg_temp.outcome('CREATE INDEX ON public.schedule_bait (public.schedule_sneak(a))');
DROP TABLE public.schedule_bait;
DROP FUNCTION public.schedule_sneak;

SELECT jobq.unschedule('schedule missing') AS missing, jobq.unschedule('schedule later') AS later, jobq.unschedule('schedule later') AS again;
SELECT jobq.unschedule(schedule) FROM jobq.schedules WHERE schedule LIKE 'schedule %' AND owner <> 'postgres';
DO $$ BEGIN PERFORM jobq.unschedule(schedule) FROM jobq.schedules WHERE schedule LIKE 'schedule %'; END $$;
SELECT count(*) FROM jobq.schedules WHERE schedule LIKE 'schedule %';
DROP ROLE schedule_ann, "schedule ""Bob""", schedule_admin, schedule_nobody;
