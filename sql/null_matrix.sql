-- NULL: each function with NULL in each of its arguments and in all of them, as the catalog lists them.
-- A function that another version brings is tested by being there.
\set VERBOSITY terse
SET client_min_messages = warning;
SET jobq.claim_in_transaction = 'allow';

SELECT jobq.create_queue('null_matrix', retry_base => '0') AS made;
SELECT jobq.enqueue('t', queue => 'null_matrix') AS job \gset
SELECT attempt FROM jobq.claim('null_matrix');

-- a value that fits an argument, by its name
CREATE TEMP TABLE value (argument text, literal text);
INSERT INTO value VALUES
    ('queue', '''null_matrix'''), ('queues', '''{null_matrix}'''), ('task', '''t'''), ('payload', '''{}'''), ('payloads', '''[1, 2]'''),
    ('priority', '5'), ('run_at', '''2099-01-01'''), ('delay', '''1 h'''), ('max_attempts', '3'), ('max_crashes', '3'),
    ('group_key', '''group'''), ('job_key', '''key'''), ('job_key_mode', '''keep'''), ('headers', '''{}'''), ('max_jobs', '3'),
    ('worker', '''worker'''), ('lease', '''1 min'''), ('job_id', format('%s', :job)), ('attempt', '1'), ('job_ids', format('ARRAY[%s]', :job)),
    ('attempts', 'ARRAY[1]'), ('result', '''{}'''), ('results', '''[{}]'''), ('error', '''error'''), ('retry_in', '''1 h'''), ('retry', 'true'),
    ('reason', '''reason'''), ('retry_base', '''1 s'''), ('retry_cap', '''1 s'''), ('keep_completed', '''1 s'''), ('keep_dead', '''1 s'''),
    ('force', 'true'), ('exact', 'true');

-- every function with its arguments in the order of the catalog: [with a default or not, name, type]
CREATE TEMP TABLE argument AS
SELECT proname AS function, n AS position, proargnames[n] AS argument, format_type(proargtypes[n - 1], NULL) AS type,
       n > pronargs - pronargdefaults AS has_default, pronargs
FROM pg_proc, generate_series(1, pronargs) AS n
WHERE pronamespace = 'jobq'::regnamespace AND prokind = 'f';
-- all arguments have names, and this file knows a value for each
SELECT function, argument FROM argument LEFT JOIN value USING (argument) WHERE argument IS NULL OR literal IS NULL;

-- what a call ends with; whatever it did is undone
CREATE FUNCTION pg_temp.ends(call text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    state text;
    message text;
BEGIN
    EXECUTE call;
    RAISE SQLSTATE 'UNDO0';
EXCEPTION
    WHEN SQLSTATE 'UNDO0' THEN
        RETURN 'accepted';
    WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
        RETURN state || ' ' || message;
END
$$;
-- the call of a function, with NULL at the positions given; run_at and delay exclude each other
CREATE FUNCTION pg_temp.call(name text, nulls int[]) RETURNS text
LANGUAGE sql AS $$
SELECT format('SELECT * FROM jobq.%I(%s)', name, string_agg(format('%I => %s', argument,
           CASE WHEN position = ANY (nulls) OR (argument = 'delay' AND name LIKE 'enqueue%' AND NOT 'run_at' = ANY (coalesce(absent, '{}'))) THEN 'NULL' ELSE literal END), ', ' ORDER BY position))
FROM argument JOIN value USING (argument),
     LATERAL (SELECT array_agg(a.argument) FROM argument a WHERE a.function = name AND a.position = ANY (nulls)) AS absences (absent)
WHERE function = name
$$;

-- with a value for each argument every call is accepted
SELECT function, pg_temp.ends(pg_temp.call(function, '{}')) FROM (SELECT DISTINCT function FROM argument) AS functions ORDER BY 1;

-- case 158: NULL in one argument: accepted where there is a default, else an error that names the argument
SELECT function, argument, has_default, pg_temp.ends(pg_temp.call(function, ARRAY[position])) AS ends
FROM argument ORDER BY function, position;
SELECT function, argument
FROM (SELECT *, pg_temp.ends(pg_temp.call(function, ARRAY[position])) AS ends FROM argument) AS calls
WHERE NOT CASE WHEN function = 'drop_queue' AND argument = 'force' THEN ends ~ '^55006' WHEN has_default THEN ends = 'accepted' ELSE ends ~ ('^22004 .*\m' || argument || '\M') END;

-- without arguments there is nothing to be NULL; a trigger's function is called as one or not at all
SELECT proname, pg_temp.ends(format('SELECT jobq.%I()', proname))
FROM pg_proc WHERE pronamespace = 'jobq'::regnamespace AND pronargs = 0 ORDER BY 1;

-- NULL in all of them
SELECT function, pg_temp.ends(pg_temp.call(function, array_agg(position))) AS ends
FROM argument GROUP BY 1 ORDER BY 1;

-- arrays: empty, with NULL, of two dimensions, with bounds of their own
CREATE FUNCTION pg_temp.with_array(name text, place int, literal text) RETURNS text
LANGUAGE sql AS $$
SELECT replace(pg_temp.call(name, ARRAY[place]), format('%I => NULL', argument), format('%I => %s', argument, literal))
FROM argument WHERE function = name AND position = place
$$;
SELECT function, argument, literal, pg_temp.ends(pg_temp.with_array(function, position, format('%L', literal)))
FROM argument, unnest(CASE type WHEN 'text[]' THEN ARRAY['{}', '{NULL}', '{null_matrix,NULL}', '{{null_matrix}}', '[5:5]={null_matrix}']
                                ELSE ARRAY['{}', '{NULL}', '{1,NULL}', '{{1}}', '{{{1}}}', '[5:5]={1}', '[-2147483648:-2147483648]={1}'] END) AS literals (literal)
WHERE type LIKE '%[]'
ORDER BY function, position, literal;

-- JSON that is none of what was asked for
SELECT function, argument, literal, pg_temp.ends(pg_temp.with_array(function, position, format('%L', literal)))
FROM argument, unnest(ARRAY['null', '1', '"text"', 'true', '{}', '[]', '[null]', '[[]]']) AS literals (literal)
WHERE argument IN ('payloads', 'results')
ORDER BY function, position, literal;

-- after all this the job is where it was
SELECT attempt, state FROM jobq.jobs WHERE job_id = :job;
SELECT jobq.complete(:job, 1);

-- nothing is left for the sweeps of other files
\o /dev/null
SELECT jobq.drop_queue(queue, true) FROM jobq.queues WHERE queue ~ '^null_matrix( |$)';
\o
