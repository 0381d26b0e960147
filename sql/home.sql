-- Schedules that came here by a dump or a clone rest, until somebody says that they belong here.
\set VERBOSITY terse
SET TimeZone = 'UTC';
SET client_min_messages = warning;
CREATE ROLE home_ann IN ROLE jobq_scheduler;
CREATE ROLE home_admin IN ROLE jobq_admin;
SELECT jobq.create_queue('home');
CREATE VIEW pg_temp.runs AS SELECT schedule, state, reason FROM jobq.schedule_runs WHERE schedule LIKE 'home %' ORDER BY schedule, run_at;

-- the first schedule makes the home here, wherever it was before
DELETE FROM jobq.schedule;
UPDATE jobq.home SET system_identifier = 1;
SET ROLE home_ann;
SELECT jobq.schedule_job('home ann', '* * * * *', 't', queue => 'home') IS NOT NULL AS made;
RESET ROLE;
SELECT h.system_identifier = c.system_identifier AND h.database_oid = d.oid AS is_here FROM jobq.home h, pg_control_system() c, pg_database d WHERE datname = current_database();

-- a copy: nothing of it fires, whatever is due, and nothing is missed
UPDATE jobq.home SET system_identifier = 1;
UPDATE jobq.schedule SET handled_until = '2026-03-01 00:00', next_run_at = '2026-03-01 00:01', waiting = '2026-03-01 00:00';
SELECT jobq.fire_schedules('2026-03-01 00:01'), jobq.fire_schedules();
SELECT schedule, state, next_run_at FROM jobq.schedules WHERE schedule LIKE 'home %';
SELECT * FROM jobq.health() WHERE check_name = 'schedules';
TABLE pg_temp.runs;
-- another database of the same cluster is a copy as well, and so is one that knows no home
UPDATE jobq.home SET system_identifier = (SELECT system_identifier FROM pg_control_system()), database_oid = 1;
SELECT jobq.fire_schedules('2026-03-01 00:01'), state FROM jobq.schedules WHERE schedule LIKE 'home %';
DELETE FROM jobq.home;
SELECT jobq.fire_schedules('2026-03-01 00:01'), state FROM jobq.schedules WHERE schedule LIKE 'home %';
-- its owners may do with it what they like, and are told; a schedule more makes no home
SET ROLE home_ann;
SELECT jobq.pause_schedule('home ann');
SELECT jobq.resume_schedule('home ann');
SELECT jobq.schedule_job('home more', '* * * * *', 't', queue => 'home') IS NOT NULL AS made;
SELECT schedule, state FROM jobq.schedules WHERE schedule LIKE 'home %' ORDER BY 1;
-- whoever wants one of its jobs has it
SELECT jobq.run_schedule('home ann') IS NOT NULL AS runs;
SELECT jobq.unschedule('home more');
-- it is no scheduler's business to say where they belong
SELECT jobq.adopt();
RESET ROLE;
TABLE pg_temp.runs;

-- at home, a schedule is of the role of its owner's name, whatever number that has here; without one it stops
UPDATE jobq.schedule SET owner_oid = 'home_admin'::regrole;
UPDATE jobq.schedule_run SET owner_oid = 'home_admin'::regrole WHERE name = 'home ann';
SELECT jobq.schedule_job('home nobody', '* * * * *', 't', queue => 'home') IS NOT NULL AS made;
UPDATE jobq.schedule SET owner_oid = 'home_admin'::regrole, owner_name = 'home_nobody' WHERE name = 'home nobody';
SET ROLE home_admin;
SELECT jobq.adopt();
SELECT jobq.adopt();
SET ROLE home_ann;
SELECT schedule, state, owner FROM jobq.schedules;
SELECT count(*) FROM jobq.schedule_runs;
RESET ROLE;
UPDATE jobq.schedule SET handled_until = '2026-03-01 00:00', next_run_at = '2026-03-01 00:01', waiting = NULL WHERE name LIKE 'home %';
SELECT jobq.cancel_key('home', 'schedule/home ann');
DO $$ BEGIN PERFORM jobq.fire_schedules('2026-03-01 00:01'); END $$;
SELECT schedule, state, reason FROM jobq.schedules WHERE schedule LIKE 'home %' ORDER BY 1;
TABLE pg_temp.runs;

DELETE FROM jobq.schedule;
DELETE FROM jobq.schedule_run WHERE name LIKE 'home %';
SELECT jobq.drop_queue('home', force => true);
DROP VIEW pg_temp.runs;
DROP ROLE home_ann, home_admin;
