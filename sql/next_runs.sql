-- When schedules are due, in time zones with their leaps, and what is no schedule. An oracle of its own is held against next_runs in
-- test/instants: here stand the rules, one by one.
\set VERBOSITY terse
SET client_min_messages = warning;
SET TimeZone = 'UTC';
\pset format unaligned
\pset tuples_only on

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
-- in the zone's own time, with its offset
CREATE FUNCTION pg_temp.runs(schedule text, zone text, after timestamptz, count int) RETURNS TABLE (local text)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('TimeZone', zone, true);
    RETURN QUERY SELECT to_char(r, 'YYYY-MM-DD HH24:MI:SS OF') FROM jobq.next_runs(schedule, count, zone, after) AS r;
    PERFORM set_config('TimeZone', 'UTC', true);
END
$$;

-- case 9: a fixed hour in the gap is due at its end, in a repeated hour in its first pass
SELECT * FROM pg_temp.runs('30 2 * * *', 'America/New_York', '2025-03-08 12:00+00', 3);
SELECT * FROM pg_temp.runs('30 1 * * *', 'America/New_York', '2025-11-01 12:00+00', 3);
-- what falls on one instant is one
SELECT * FROM pg_temp.runs('*/15 2 * * *', 'Europe/Berlin', '2025-03-29 01:40+00', 3);
-- an entry for every hour follows real time: 46 and 50 half hours a day, two passes
SELECT count(*) FROM jobq.next_runs('*/30 * * * *', 1000, 'America/New_York', '2025-03-09 04:59+00') AS r WHERE r < '2025-03-10 04:00+00';
SELECT count(*) FROM jobq.next_runs('*/30 * * * *', 1000, 'America/New_York', '2025-11-02 03:59+00') AS r WHERE r < '2025-11-03 05:00+00';
SELECT * FROM pg_temp.runs('30 */1 * * *', 'Australia/Lord_Howe', '2025-04-05 13:45+00', 4);
SELECT * FROM pg_temp.runs('15 2 * * *', 'Australia/Lord_Howe', '2025-10-03 00:00+00', 3);
-- clocks that go back for the month of fasting
SELECT * FROM pg_temp.runs('30 2 * * *', 'Africa/Casablanca', '2025-02-22 12:00+00', 2);
SELECT * FROM pg_temp.runs('30 2 * * *', 'Africa/Casablanca', '2025-04-05 12:00+00', 2);
-- a gap at midnight, and a day that never was
SELECT * FROM pg_temp.runs('@daily', 'America/Sao_Paulo', '2018-11-03 12:00+00', 2);
SELECT * FROM pg_temp.runs('0 9 30 12 *', 'Pacific/Apia', '2011-12-01 00:00+00', 2);
-- case 12: the same hour on the clock in winter and in summer
SELECT * FROM pg_temp.runs('0 7 28-31 3 *', 'Europe/London', '2026-03-27 12:00+00', 3);

-- cases 7, 8: the calendar
SELECT * FROM pg_temp.runs('0 0 29 2 *', 'UTC', '2023-06-01 00:00+00', 2);
SELECT * FROM pg_temp.runs('0 0 29 2 *', 'UTC', '2024-03-01 00:00+00', 1);
SELECT * FROM pg_temp.runs('0 0 29 2 *', 'UTC', '2097-01-01 00:00+00', 1);
SELECT * FROM pg_temp.runs('0 0 31 * *', 'UTC', '2026-01-31 00:00+00', 3);
SELECT * FROM pg_temp.runs('59 23 L * *', 'UTC', '2024-01-31 23:59+00', 3);
-- case 13: every second month, without a month repeated or left out
SELECT count(DISTINCT date_trunc('month', r AT TIME ZONE 'Europe/Berlin')), min(r), max(r)
FROM jobq.next_runs('0 0 1 */2 *', 12, 'Europe/Berlin', '2026-01-01 00:00+00') AS r;
-- either day matches, if both are restricted; both must, if one begins with a star
SELECT * FROM pg_temp.runs('0 0 13 * fri', 'UTC', '2026-02-07 00:00+00', 3);
SELECT * FROM pg_temp.runs('0 0 */2 * fri', 'UTC', '2026-02-07 00:00+00', 3);
-- Sunday is 0 and 7; the third Friday, the last Friday, the working day nearest to the 15th, the last working day
SELECT (SELECT array_agg(r) FROM jobq.next_runs('0 0 * * 0', 3, 'UTC', '2026-01-01') r) = (SELECT array_agg(r) FROM jobq.next_runs('0 0 * * 7', 3, 'UTC', '2026-01-01') r);
SELECT * FROM pg_temp.runs('0 0 * * 5#3', 'UTC', '2026-01-01 00:00+00', 2);
SELECT * FROM pg_temp.runs('0 0 * * 5L', 'UTC', '2026-01-01 00:00+00', 2);
SELECT * FROM pg_temp.runs('0 0 15W * *', 'UTC', '2026-02-01 00:00+00', 2);
SELECT * FROM pg_temp.runs('0 0 LW * *', 'UTC', '2026-01-01 00:00+00', 2);
-- the working day nearest to the first is in the same month; the last day but one
SELECT * FROM pg_temp.runs('0 0 1W * *', 'UTC', '2026-07-31 00:00+00', 2);
SELECT * FROM pg_temp.runs('0 0 L-1 * *', 'UTC', '2026-01-31 00:00+00', 2);
-- six fields: seconds first
SELECT * FROM pg_temp.runs('*/20 0 12 * * *', 'UTC', '2026-01-01 00:00+00', 4);
-- intervals keep their real cadence; @reboot has no instant of its own
SELECT * FROM pg_temp.runs('90 minutes', 'America/New_York', '2025-11-02 04:00+00', 3);
SELECT count(*) FROM jobq.next_runs('@reboot');

-- case 167: the session's time zone is nobody's business
SELECT set_config('TimeZone', 'Asia/Kathmandu', false) IS NOT NULL;
SELECT r = '2026-06-01 10:00:00+00' FROM jobq.next_runs('0 12 1 6 *', 1, 'europe/BERLIN', '2026-01-01 00:00+00') AS r;
SELECT r = '2026-06-01 12:00:00+00' FROM jobq.next_runs('0 12 1 6 *', 1, after => '2026-01-01 00:00+00') AS r;
SET TimeZone = 'UTC';

-- case 16: zones are names of pg_timezone_names, nothing else
SELECT zone, pg_temp.outcome(format('SELECT jobq.next_runs(''@daily'', timezone => %L)', zone))
FROM unnest('{CST,CST6,+02,GMT+24,"","europe/berlin ",EST5EDT4,Mars/Olympus,America,:UTC,Foo/Bar3,<+02>-2,../UTC}'::text[]) AS zone;
SELECT zone, pg_temp.outcome(format('SELECT jobq.next_runs(''@daily'', timezone => %L)', zone))
FROM unnest('{utc,est5edt,etc/gmt+5,america/argentina/buenos_aires}'::text[]) AS zone;

-- cases 14, 156: what is no schedule, and what can never be
SELECT schedule, pg_temp.outcome(format('SELECT jobq.next_runs(%L)', schedule))
FROM unnest(ARRAY['', '     ', '* * * *', '* * * * * * *', '60 * * * *', '* 24 * * *', '0 0 0 * *', '0 0 32 * *', '0 0 * 13 *', '0 0 * * 8', '*/0 * * * *', '*/90 * * * *',
    '5/15 * * * *', '1- * * * *', '22-2 * * * *', '1, * * * *', '-1 * * * *', '99999999999999999999 * * * *', '? * * * *', 'x * * * *', '@', '@never', '@reboot x', '@every 5m',
    '0 0 30 2 *', '0 0 31 2,4,6,9,11 *', '0 0 * * 1#6', '0 seconds', '-5 seconds', '0.5 seconds', '1 month', '5', '5 parsecs', 'every 5 minutes', '99999999999 days']) AS schedule;
SELECT pg_temp.outcome($$SELECT jobq.next_runs(repeat('*', 1001))$$);
SELECT pg_temp.outcome($$SELECT jobq.next_runs('@daily', 0)$$);
SELECT pg_temp.outcome($$SELECT jobq.next_runs('@daily', 1001)$$);
SELECT pg_temp.outcome($$SELECT jobq.next_runs('@daily', after => 'infinity')$$);
SELECT pg_temp.outcome($$SELECT jobq.next_runs(NULL)$$);
