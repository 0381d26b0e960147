-- SQL jobs as their makers see them: made, seen, cancelled, in schedules. Nothing runs here: see test/t.
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
    RETURN regexp_replace(state || ' ' || message || coalesce(' [' || nullif(hint, '') || ']', ''), 'SQL job \d+', 'SQL job N');
END
$$;
CREATE FUNCTION pg_temp.makes(maker text, run_as text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('role', maker, true);
    RETURN pg_temp.outcome(format('SELECT jobq.enqueue_sql(''SELECT 1'', run_as => %L)', run_as));
END
$$;
CREATE FUNCTION pg_temp.alters() RETURNS TABLE (call text, outcome text) LANGUAGE sql AS $$
    SELECT call, pg_temp.outcome('SELECT jobq.alter_schedule(''sql_jobs nightly'', ' || call || ')')
    FROM unnest(ARRAY['''0 5 * * *''', 'command => ''SELECT 2''', 'timeout => ''3 h''', 'run_as => ''sql_jobs_ann''', 'run_as => current_user::text', 'run_as => current_user::text, command => ''SELECT 3''']) AS call
$$;
CREATE ROLE sql_jobs_ann LOGIN IN ROLE jobq_scheduler;
CREATE ROLE "sql_jobs ""Bob""" LOGIN IN ROLE jobq_scheduler;
CREATE ROLE sql_jobs_member LOGIN IN ROLE jobq_scheduler, sql_jobs_ann;
CREATE ROLE sql_jobs_admin LOGIN IN ROLE jobq_admin;
CREATE ROLE sql_jobs_group IN ROLE jobq_scheduler;
CREATE ROLE sql_jobs_none LOGIN CONNECTION LIMIT 0 IN ROLE jobq_scheduler;
CREATE ROLE sql_jobs_plain LOGIN;

-- a command in a queue of its role, with a row beside the job; other commands are in other queues
SET ROLE sql_jobs_ann;
SELECT jobq.enqueue_sql('SELECT 1') AS ann \gset
SELECT jobq.enqueue_sql('VACUUM', delay => '1 h', timeout => '90 s', max_attempts => 3) AS later \gset
SET ROLE "sql_jobs ""Bob""";
SELECT jobq.enqueue_sql('TABLE secret') AS bob \gset
RESET ROLE;
SELECT j.queue = 'sql/' || r.oid AS is_its_roles, j.task, j.state, j.priority, j.run_at > now() AS is_later, c.command, c.role_name, c.timeout, q.lease
FROM jobq.jobs j JOIN jobq.sql_command c USING (job_id) JOIN pg_roles r ON r.oid = c.role_oid JOIN jobq.queues q USING (queue) WHERE job_id IN (:ann, :later, :bob) ORDER BY job_id;

-- no worker gets it, and no producer puts one there
SELECT outcome FROM pg_roles, unnest(ARRAY['claim(%L)', 'claim_from(ARRAY[%L])', 'enqueue(%2$L, queue => %1$L)', 'create_queue(%L)', 'complete_and_claim(ARRAY[1], ARRAY[1], %L)',
    'cancel_key(%L, ''k'')', 'schedule_job(''s'', ''@daily'', ''t'', queue => %L)']) AS call,
    regexp_replace(pg_temp.outcome('SELECT jobq.' || format(call, 'sql/' || oid, 't')), 'sql/\d+', 'sql/N') AS outcome WHERE rolname = 'sql_jobs_ann';

-- cases 141, 148: a role sees and cancels its own, a member the role's, an administrator all; a reader of others' views sees no command
SET ROLE sql_jobs_ann;
SELECT run_as, command, timeout, state, max_attempts FROM jobq.sql_jobs ORDER BY job_id;
SELECT pg_temp.outcome(format('SELECT jobq.cancel_sql(%s)', :bob));
SELECT jobq.cancel(:ann);
SET ROLE "sql_jobs ""Bob""";
SELECT run_as, command, timeout, state, max_attempts FROM jobq.sql_jobs ORDER BY job_id;
SET ROLE sql_jobs_member;
SELECT run_as, command, timeout, state, max_attempts FROM jobq.sql_jobs ORDER BY job_id;
SELECT jobq.cancel_sql(:later, 'not wanted');
SELECT state, reason FROM jobq.sql_jobs WHERE job_id = :later;
SELECT jobq.cancel_sql(:later), jobq.cancel_sql(9223372036854775807);
SET ROLE sql_jobs_admin;
SELECT count(*) FROM jobq.sql_jobs WHERE run_as LIKE 'sql_jobs%';
SELECT jobq.cancel(:bob, 'by an administrator');
RESET ROLE;

-- cases 141, 143, 146: who may have what run as whom; a role that could not connect is refused at once
SELECT maker, run_as, pg_temp.makes(maker, run_as) FROM (VALUES ('sql_jobs_ann', NULL), ('sql_jobs_ann', 'sql_jobs_ann'), ('sql_jobs_ann', 'sql_jobs "Bob"'), ('sql_jobs_member', 'sql_jobs_ann'),
    ('sql_jobs_admin', 'sql_jobs_ann'), ('none', 'sql_jobs_ann'), ('none', 'missing'), ('none', repeat('x', 100)), ('sql_jobs_group', NULL), ('sql_jobs_none', NULL), ('sql_jobs_plain', NULL)) AS v (maker, run_as);
RESET ROLE;
REVOKE CONNECT ON DATABASE :DBNAME FROM PUBLIC;
SET ROLE sql_jobs_ann;
SELECT pg_temp.outcome($$SELECT jobq.enqueue_sql('SELECT 1')$$);
SELECT pg_temp.outcome($$SELECT jobq.schedule('no', '@daily', 'SELECT 1')$$);
RESET ROLE;
GRANT CONNECT ON DATABASE :DBNAME TO PUBLIC;

-- bad input is refused when it is given, not when it runs
\pset format unaligned
\pset tuples_only on
SELECT call, pg_temp.outcome('SELECT jobq.' || call)
FROM unnest(ARRAY[
    $$enqueue_sql(NULL)$$, $$enqueue_sql('')$$, $$enqueue_sql(' -- nothing')$$, $$enqueue_sql('selec 1')$$, $$enqueue_sql('SELECT ''')$$, $$enqueue_sql(repeat('x', 1048577))$$,
    $$enqueue_sql('SELECT 1', timeout => '0')$$, $$enqueue_sql('SELECT 1', timeout => '-1 s')$$, $$enqueue_sql('SELECT 1', timeout => '1 month')$$, $$enqueue_sql('SELECT 1', max_attempts => 0)$$,
    $$enqueue_sql('SELECT 1', run_at => '2099-01-01', delay => '1 h')$$, $$cancel_sql(NULL)$$,
    $$schedule(NULL, '@daily', 'SELECT 1')$$, $$schedule('n', NULL, 'SELECT 1')$$, $$schedule('n', '@daily', NULL)$$, $$schedule('n', '@daily')$$, $$schedule('', '@daily', 'SELECT 1')$$,
    $$schedule('n', 'never', 'SELECT 1')$$, $$schedule('n', '@daily', 'never')$$, $$schedule('n', '@daily', 'SELECT 1', timeout => '0')$$, $$schedule('n', '@daily', 'SELECT 1', max_attempts => 0)$$,
    $$schedule('n', '@daily', 'SELECT 1', run_as => 'missing')$$, $$schedule('@daily', 'never')$$]) AS call;
\pset format aligned
\pset tuples_only off

-- pg_cron's arguments: three of them, and two without a name, which is made up
SET ROLE sql_jobs_ann;
SELECT jobq.schedule('sql_jobs nightly', '0 3 * * *', 'VACUUM') AS nightly \gset
SELECT jobq.schedule('0 10 * * *', 'DELETE FROM events WHERE event_time < now() - interval ''1 week''') AS nameless \gset
SELECT schedule = 'schedule ' || :nameless AS is_named_by_its_id FROM jobq.schedules WHERE expression = '0 10 * * *';
SELECT jobq.schedule('sql_jobs all', '0 9 * * mon-fri', 'SELECT 1; SELECT 2', 'europe/berlin', 'queue', 'all', '2026-01-01', '2099-01-01', '5 min', '2 h', 3, 'sql_jobs_ann') IS NOT NULL AS made;
\x on
SELECT schedule, expression, timezone, state, overlap, catch_up, starts_at, ends_at, jitter, owner, task, payload, regexp_replace(queue, '\d+', 'N') AS queue, max_attempts, command, timeout, run_as
FROM jobq.schedules WHERE schedule LIKE 'sql_jobs %' ORDER BY schedule;
\x off
-- case 68: the name is its owner's, who may make it another kind of schedule too
SELECT jobq.schedule('sql_jobs nightly', '0 4 * * *', 'ANALYZE') = :nightly AS is_the_same;
SELECT pg_temp.outcome($$SELECT jobq.alter_schedule('sql_jobs nightly', task => 't')$$);
SELECT jobq.schedule_job('sql_jobs nightly', '0 4 * * *', 'work') = :nightly AS is_the_same;
SELECT task, queue, command, run_as FROM jobq.schedules WHERE schedule = 'sql_jobs nightly';
SELECT pg_temp.outcome($$SELECT jobq.alter_schedule('sql_jobs nightly', command => 'SELECT 1')$$);
SELECT jobq.schedule('sql_jobs nightly', '0 4 * * *', 'ANALYZE') = :nightly AS is_the_same;
SET ROLE "sql_jobs ""Bob""";
SELECT pg_temp.outcome($$SELECT jobq.schedule('sql_jobs nightly', '0 3 * * *', 'VACUUM')$$);

-- what a schedule runs is its role's business alone; when it runs is the owner's and an administrator's too
SET ROLE sql_jobs_member;
SELECT * FROM pg_temp.alters();
SET ROLE sql_jobs_admin;
SELECT * FROM pg_temp.alters();
-- only by saying it herself can one have a command of hers in another's schedule, which is hers from then on
SELECT command, run_as, owner FROM jobq.schedules WHERE schedule = 'sql_jobs nightly';
SET ROLE sql_jobs_ann;
SELECT * FROM pg_temp.alters();
SELECT command, run_as, owner FROM jobq.schedules WHERE schedule = 'sql_jobs nightly';
RESET ROLE;
-- a superuser may name the role; whoever owns the schedule and is none any more has no say in what runs as another
CREATE ROLE sql_jobs_once SUPERUSER LOGIN;
SET ROLE sql_jobs_once;
SELECT jobq.schedule('sql_jobs once', '@daily', 'SELECT 1', run_as => 'sql_jobs_ann') IS NOT NULL AS made;
RESET ROLE;
ALTER ROLE sql_jobs_once NOSUPERUSER;
GRANT jobq_scheduler TO sql_jobs_once;
SET ROLE sql_jobs_once;
SELECT pg_temp.outcome($$SELECT jobq.alter_schedule('sql_jobs once', command => 'SELECT 2')$$);
SELECT pg_temp.outcome($$SELECT jobq.alter_schedule('sql_jobs once', run_as => 'sql_jobs_once')$$);
SELECT pg_temp.outcome($$SELECT jobq.alter_schedule('sql_jobs once', run_as => 'sql_jobs_once', command => 'SELECT 3')$$);
SELECT command, run_as, owner FROM jobq.schedules WHERE schedule = 'sql_jobs once';
RESET ROLE;

-- what fires is a SQL job of the role, once while it is live; one for which the role may not connect any more stops the schedule
UPDATE jobq.schedule SET handled_until = '2026-03-01 00:00', created_at = '2026-03-01 00:00', next_run_at = '2026-03-01 05:00', paused = false WHERE name = 'sql_jobs nightly';
SELECT jobq.fire_schedules('2026-03-01 05:30', '2026-03-01 00:00') > 0 AS fired;
SELECT s.last_outcome, c.command, c.run_as, c.timeout, c.max_attempts, c.state FROM jobq.schedules s JOIN jobq.sql_jobs c ON c.job_id = s.last_job_id WHERE schedule = 'sql_jobs nightly';
ALTER ROLE sql_jobs_ann NOLOGIN;
SELECT jobq.fire_schedules('2026-03-02 05:30', '2026-03-01 00:00') > 0 AS fired;
SELECT schedule, state, reason FROM jobq.schedules WHERE schedule IN ('sql_jobs nightly');
SELECT pg_temp.outcome($$SELECT jobq.resume_schedule('sql_jobs nightly')$$);
SELECT pg_temp.outcome($$SELECT jobq.run_schedule('sql_jobs nightly')$$);
ALTER ROLE sql_jobs_ann LOGIN;
SELECT jobq.resume_schedule('sql_jobs nightly');
SELECT state FROM jobq.schedules WHERE schedule = 'sql_jobs nightly';

-- whoever resumes what nobody owns any more does not come to run its command
CREATE ROLE sql_jobs_gone LOGIN IN ROLE jobq_scheduler;
SET ROLE sql_jobs_gone;
SELECT jobq.schedule('sql_jobs trap', '@daily', 'GRANT jobq_admin TO sql_jobs_plain') IS NOT NULL AS made;
RESET ROLE;
DROP ROLE sql_jobs_gone;
SELECT jobq.pause_schedule('sql_jobs trap');
SET ROLE sql_jobs_admin;
SELECT pg_temp.outcome($$SELECT jobq.resume_schedule('sql_jobs trap')$$);
RESET ROLE;
SELECT command, run_as, owner, state FROM jobq.schedules WHERE schedule = 'sql_jobs trap';

-- a command goes with its job, whatever way that goes
SELECT 'sql/' || oid AS ann_queue FROM pg_roles WHERE rolname = 'sql_jobs_ann' \gset
SELECT jobq.purge_queue(:'ann_queue') > 0 AS purged;
SELECT count(*) FROM jobq.sql_command c WHERE NOT EXISTS (SELECT FROM jobq.job j WHERE j.job_id = c.job_id);
UPDATE jobq.finished SET prune_at = '2000-01-01';
SELECT jobq.sweep();
SELECT count(*) FROM jobq.sql_command c WHERE NOT EXISTS (SELECT FROM jobq.job j WHERE j.job_id = c.job_id);
SET ROLE sql_jobs_ann;
SELECT jobq.enqueue_sql('SELECT 1') > 0 AS made;
RESET ROLE;
SELECT jobq.drop_queue(:'ann_queue', force => true);
SELECT count(*) FROM jobq.sql_command c WHERE NOT EXISTS (SELECT FROM jobq.job j WHERE j.job_id = c.job_id);
SET ROLE sql_jobs_ann;
SELECT jobq.enqueue_sql('SELECT 1') > 0 AS made_in_a_new_queue;
SET ROLE "sql_jobs ""Bob""";
SELECT jobq.enqueue_sql('SELECT 1') > 0 AS made;
RESET ROLE;

-- a copy rests until it is adopted; then a role of the same name is the job's, and nobody else
UPDATE jobq.home SET system_identifier = 1;
SET client_min_messages = notice;
SELECT jobq.enqueue_sql('SELECT 1') > 0 AS made;
SET client_min_messages = warning;
UPDATE jobq.sql_command SET role_oid = (SELECT oid FROM pg_roles WHERE rolname = current_user) WHERE role_name = 'sql_jobs_ann';
UPDATE jobq.sql_command SET role_name = 'sql_jobs_elsewhere' WHERE role_oid = (SELECT oid FROM pg_roles WHERE rolname = 'sql_jobs "Bob"');
UPDATE jobq.schedule SET run_as_oid = 10 WHERE name LIKE 'sql_jobs %';
SELECT jobq.adopt();
SELECT c.role_name, r.rolname AS role, q.name = 'sql/' || r.oid AS stands_in_its_queue FROM jobq.sql_command c JOIN jobq.job USING (job_id) JOIN jobq.queue q USING (queue_id)
    LEFT JOIN pg_roles r ON r.oid = c.role_oid WHERE role_name LIKE 'sql_jobs%' GROUP BY 1, 2, 3 ORDER BY 1, 2;
SELECT name, run_as_name, r.rolname, queue = 'sql/' || r.oid AS has_its_queue FROM jobq.schedule LEFT JOIN pg_roles r ON r.oid = run_as_oid WHERE name LIKE 'sql_jobs %' ORDER BY 1;

-- a security-restricted operation makes no job in somebody's name
CREATE FUNCTION public.sql_jobs_sneak(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM jobq.enqueue_sql('SELECT 1'); RETURN 1; END $$;
CREATE TABLE public.sql_jobs_bait AS SELECT 1 AS a;
SELECT pg_temp.outcome('CREATE INDEX ON public.sql_jobs_bait (public.sql_jobs_sneak(a))');
DROP TABLE public.sql_jobs_bait;
DROP FUNCTION public.sql_jobs_sneak;

SELECT count(jobq.unschedule(schedule)) > 0 AS cleared FROM jobq.schedules WHERE schedule LIKE 'sql_jobs %' OR expression = '0 10 * * *';
DROP ROLE sql_jobs_ann, "sql_jobs ""Bob""", sql_jobs_member, sql_jobs_admin, sql_jobs_group, sql_jobs_none, sql_jobs_plain, sql_jobs_once;
