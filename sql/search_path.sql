-- Promise 11: no name in a function, a view or the install script depends on the caller's search_path.
-- An attacker with little rights plants operators, functions, types, casts and tables; whoever calls jobq must never reach one.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE ROLE jobq_search_path_attacker;
CREATE SCHEMA jobq_evil AUTHORIZATION jobq_search_path_attacker;
GRANT USAGE ON SCHEMA jobq_evil TO PUBLIC;
SET ROLE jobq_search_path_attacker;
-- each planted function raises and says who reached it: a call that survives has not met it
CREATE FUNCTION jobq_evil.note(name pg_catalog.text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'hijacked: % as %', name, current_user;
END
$$;
-- operators over every pair of types that a queue uses, in every spelling
DO $$
DECLARE
    t text;
    op text;
    kind text;
    result text;
BEGIN
    FOREACH t IN ARRAY ARRAY['bigint', 'int', 'smallint', 'text', 'name', 'boolean', 'timestamptz', 'interval', 'jsonb', 'bigint[]', 'int[]', 'text[]', 'oid', 'regclass', 'anyelement'] LOOP
        FOREACH op IN ARRAY ARRAY['=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '||', '~', '@>', '->', '->>', '%'] LOOP
            kind := format('jobq_evil.%I(%s, %s)', 'op' || op, t, t);
            result := CASE WHEN op IN ('=', '<>', '<', '<=', '>', '>=', '~', '@>') THEN 'boolean' WHEN t = 'timestamptz' AND op = '-' THEN 'interval' ELSE t END;
            EXECUTE format('CREATE FUNCTION %s RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN PERFORM jobq_evil.note(%L); RETURN NULL; END $f$', kind, result, op || ' ' || t);
            EXECUTE format('CREATE OPERATOR jobq_evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = jobq_evil.%I)', op, t, t, 'op' || op);
        END LOOP;
    END LOOP;
    -- and over the mixed pairs that fit a call better than the server's own
    FOR t, kind IN VALUES ('bigint', 'int'), ('int', 'bigint'), ('timestamptz', 'interval'), ('smallint', 'int'), ('int', 'smallint'),
                          ('bigint', 'smallint'), ('jsonb', 'int'), ('jsonb', 'text'), ('text', 'anyelement'), ('interval', 'double precision') LOOP
        FOREACH op IN ARRAY ARRAY['=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '||', '->', '->>'] LOOP
            result := CASE WHEN op IN ('=', '<>', '<', '<=', '>', '>=') THEN 'boolean' ELSE t END;
            EXECUTE format('CREATE FUNCTION jobq_evil.%I(%s, %s) RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN PERFORM jobq_evil.note(%L); RETURN NULL; END $f$',
                           'mixed' || op, t, kind, result, format('%s %s %s', t, op, kind));
            EXECUTE format('CREATE OPERATOR jobq_evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = jobq_evil.%I)', op, t, kind, 'mixed' || op);
        END LOOP;
    END LOOP;
    -- functions: of the server's names, for the same arguments
    FOR kind, result IN
        SELECT DISTINCT format('%I(%s)', proname, pg_get_function_identity_arguments(p.oid)), format_type(prorettype, NULL)
        FROM pg_proc p
        WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND NOT proretset AND provariadic = 0
          AND prorettype NOT IN ('internal'::regtype, 'cstring'::regtype, 'trigger'::regtype, 'anyelement'::regtype, 'anyarray'::regtype, 'anycompatible'::regtype, 'anycompatiblearray'::regtype)
          AND (proname IN ('now', 'clock_timestamp', 'statement_timestamp', 'length', 'octet_length', 'left', 'lower', 'upper', 'random', 'floor', 'ceil', 'greatest', 'least',
                           'coalesce', 'format', 'concat', 'nextval', 'currval', 'setval', 'array_length', 'cardinality', 'jsonb_array_length', 'jsonb_typeof', 'to_jsonb',
                           'pg_backend_pid', 'current_setting', 'set_config', 'replace', 'substr', 'substring', 'make_interval', 'extract', 'date_part', 'pg_advisory_lock',
                           'pg_advisory_xact_lock', 'pg_notify', 'quote_ident', 'quote_literal', 'array_append', 'array_cat', 'mod', 'abs', 'power', 'isfinite', 'starts_with',
                           'convert_from', 'convert_to', 'to_timestamp', 'timezone', 'pg_relation_size', 'pg_table_size', 'hashtext', 'md5', 'pg_get_userbyid', 'justify_interval')) LOOP
        EXECUTE format('CREATE FUNCTION jobq_evil.%s RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN PERFORM jobq_evil.note(%L); %s END $f$', kind, result, kind,
                       CASE result WHEN 'void' THEN '' ELSE 'RETURN NULL;' END);
    END LOOP;
    FOR kind, result IN VALUES ('unnest(anyarray)', 'anyelement'), ('unnest(bigint[])', 'bigint'), ('unnest(int[])', 'int'), ('unnest(text[])', 'text'),
                               ('generate_series(int, int)', 'int'), ('generate_series(bigint, bigint)', 'bigint'), ('generate_subscripts(anyarray, int)', 'int'),
                               ('jsonb_array_elements(jsonb)', 'jsonb'), ('jsonb_array_elements_text(jsonb)', 'text'), ('regexp_split_to_table(text, text)', 'text') LOOP
        EXECUTE format('CREATE FUNCTION jobq_evil.%s RETURNS SETOF %s LANGUAGE plpgsql AS $f$ BEGIN PERFORM jobq_evil.note(%L); END $f$', kind, result, kind);
    END LOOP;
    FOR kind, result IN VALUES ('count', 'bigint'), ('max', 'bigint'), ('min', 'bigint'), ('sum', 'bigint'), ('array_agg', 'bigint'), ('string_agg', 'bigint') LOOP
        EXECUTE format('CREATE FUNCTION jobq_evil.%I(bigint, anyelement) RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN PERFORM jobq_evil.note(%L); RETURN NULL; END $f$', 'step of ' || kind, kind);
        EXECUTE format('CREATE AGGREGATE jobq_evil.%I(anyelement) (SFUNC = jobq_evil.%I, STYPE = bigint)', kind, 'step of ' || kind);
    END LOOP;
    -- types and tables of the names that a function would write unqualified
    FOREACH kind IN ARRAY ARRAY['text', 'jsonb', 'timestamptz', 'int4', 'int8', 'int2', 'bool', 'oid', 'regclass', '_int8', '_text', 'claimed_job'] LOOP
        EXECUTE format('CREATE DOMAIN jobq_evil.%I AS pg_catalog.int4 CHECK (false)', kind);
    END LOOP;
    FOREACH kind IN ARRAY ARRAY['job', 'ready', 'delayed', 'lease', 'finished', 'key', 'failure', 'queue', 'jobs', 'history', 'queues', 'failures', 'job_number', 'queue_number', 'pg_class', 'pg_extension'] LOOP
        EXECUTE format('CREATE TABLE jobq_evil.%I (planted pg_catalog.int4)', kind);
    END LOOP;
END
$$;
RESET ROLE;
SELECT count(*) > 400 AS planted FROM pg_proc WHERE pronamespace = 'jobq_evil'::regnamespace;
-- the traps are set: whoever writes a bare name falls in
SET search_path = jobq_evil, pg_catalog;
SELECT 1::pg_catalog.int8 = 1::pg_catalog.int8;
SELECT now();
SELECT 'x'::text;
RESET search_path;

SELECT jobq.create_queue('search_path', retry_base => '0', max_attempts => 3) AS made;
GRANT jobq_producer, jobq_worker, jobq_admin, jobq_reader TO jobq_search_path_attacker;

-- The whole of the interface, in a new session whose first word of it is said under the hostile path, so that every plan is made there.
-- Only calls and literals: an operator of this file's own would fall in.
CREATE TABLE public.jobq_search_path_calls (turn serial PRIMARY KEY, call text);
GRANT SELECT ON public.jobq_search_path_calls TO PUBLIC;
INSERT INTO public.jobq_search_path_calls (call) VALUES
    ('SELECT jobq.create_queue(''search_path made'', ''20 s'', 3, 3, ''0'', ''1 h'', ''1 month'', ''1000 years'')'),
    ('SELECT jobq.create_queue(''search_path made'')'),
    ('SELECT jobq.alter_queue(''search_path made'', ''30 s'', 4, 4, ''1 s'', ''2 h'', ''2 days'', ''3 days'')'),
    ('SELECT jobq.alter_queue(''search_path made'', retry_base => ''0'')'),
    ('SELECT jobq.enqueue(''t'', ''{"a": 1}'', ''search_path made'', 3, NULL, ''0'', 4, 4, ''g'', ''k'', ''keep'', ''{"h": 1}'')'),
    ('SELECT jobq.enqueue(''t'', queue => ''search_path made'', job_key => ''k'')'),
    ('SELECT jobq.enqueue(''t'', queue => ''search_path made'', job_key => ''k'', job_key_mode => ''replace'', delay => ''1 h'')'),
    ('SELECT jobq.enqueue(''t'', queue => ''search_path made'', job_key => ''k'', job_key_mode => ''preserve_run_at'')'),
    ('SELECT jobq.enqueue(''t'', queue => ''search_path made'', job_key => ''k'', job_key_mode => ''replace'')'),
    ('SELECT jobq.enqueue_unique(''t'', queue => ''search_path made'', job_key => ''other'')'),
    ('SELECT jobq.enqueue_batch(''t'', ''[1, 2, 3, 4, 5, 6, 7, 8]'', ''search_path made'', 3)'),
    ('SELECT jobq.enqueue_batch(''t'', ''[1, 2]'', ''search_path made'', 3, NULL, ''1 h'')'),
    ('SELECT jobq.enqueue(''t'')'),
    ('SELECT jobq.fail(job_id, attempt, ''e'') FROM jobq.claim(''search_path made'')'),
    ('SELECT jobq.fail(job_id, attempt, ''e'', ''1 h'') FROM jobq.claim_from(''{search_path made,default}'', 1)'),
    ('SELECT jobq.fail(job_id, attempt, ''e'', NULL, false) FROM jobq.claim(''search_path made'', 1, ''w'', ''1 min'')'),
    ('SELECT jobq.snooze(job_id, attempt, ''1 h'') FROM jobq.claim(''search_path made'')'),
    ('SELECT jobq.snooze(job_id, attempt, ''0'') FROM jobq.claim(''search_path made'')'),
    ('SELECT jobq.renew(job_id, attempt), jobq.renew(job_id, attempt, ''1 h''), jobq.complete(job_id, attempt, ''1'') FROM jobq.claim(''search_path made'')'),
    ('SELECT jobq.renew_batch(ARRAY[job_id], ARRAY[attempt]), jobq.complete_batch(ARRAY[job_id], ARRAY[attempt], ''[1]'') FROM jobq.claim(''search_path made'')'),
    ('SELECT jobq.cancel(job_id, ''r''), jobq.retry(job_id), jobq.reschedule(job_id, ''2099-01-01'', 2) FROM jobq.claim(''search_path made'')'),
    ('SELECT jobq.claim(''search_path made'')'),
    ('SELECT jobq.complete_and_claim(''{0}'', ''{1}'', ''search_path made'', 1, ''w'', ''1 min'', ''[1]'')'),
    ('SELECT jobq.cancel_key(''search_path made'', ''k'', ''r'')'),
    ('SELECT jobq.cancel_key(''search_path made'', ''other'')'),
    ('SELECT jobq.retry_dead(''search_path made'')'),
    ('SELECT jobq.retry_dead(''search_path made'', 1)'),
    ('SELECT jobq.sweep(10)'),
    ('SELECT jobq.health()'),
    ('SELECT jobq.queue_counts()'),
    ('SELECT jobq.queue_counts(''search_path made'')'),
    ('SELECT jobq.queue_counts(''search_path made'', true)'),
    ('TABLE jobq.jobs'), ('TABLE jobq.history'), ('TABLE jobq.dead_jobs'), ('TABLE jobq.failures'), ('TABLE jobq.queues'), ('TABLE jobq.workers'),
    ('SELECT jobq.pause_queue(''search_path made'')'),
    ('SELECT jobq.resume_queue(''search_path made'')'),
    ('SELECT jobq.purge_queue(''search_path made'')'),
    ('SELECT jobq.drop_queue(''search_path made'', true)'),
    -- and the ways out by error
    ('SELECT jobq.claim(''search_path missing'')'),
    ('SELECT jobq.enqueue(''t'', queue => ''search_path missing'')'),
    ('SELECT jobq.enqueue(''t'', priority => 11)'),
    ('SELECT jobq.complete_batch(''{1}'', ''{1,2}'')');
CREATE FUNCTION public.jobq_search_path_run() RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    c record;
BEGIN
    FOR c IN SELECT call FROM public.jobq_search_path_calls ORDER BY turn USING OPERATOR(pg_catalog.<) LOOP
        BEGIN
            EXECUTE c.call;
        EXCEPTION WHEN OTHERS THEN
            RETURN NEXT pg_catalog.concat(SQLERRM, ' <- ', c.call);
        END;
    END LOOP;
END
$$;

-- by the attacker
\c
SET jobq.claim_in_transaction = 'allow';
SET SESSION AUTHORIZATION jobq_search_path_attacker;
SET search_path = jobq_evil, pg_catalog, pg_temp;
SELECT * FROM public.jobq_search_path_run();
-- by a superuser with the attacker's path
\c
SET jobq.claim_in_transaction = 'allow';
SET search_path = jobq_evil, pg_catalog, pg_temp;
SELECT * FROM public.jobq_search_path_run();
-- by a superuser whose temporary schema has been looked at first, as it is by default for types and tables
\c
SET jobq.claim_in_transaction = 'allow';
CREATE DOMAIN pg_temp.text AS int CHECK (false);
CREATE DOMAIN pg_temp.jsonb AS int CHECK (false);
CREATE DOMAIN pg_temp.timestamptz AS int CHECK (false);
CREATE DOMAIN pg_temp.int8 AS int CHECK (false);
CREATE DOMAIN pg_temp._int8 AS int CHECK (false);
CREATE TEMP TABLE job (planted int);
CREATE TEMP TABLE ready (planted int);
CREATE TEMP TABLE lease (planted int);
CREATE TEMP TABLE queue (planted int);
CREATE TEMP TABLE pg_class (planted int);
SET search_path = pg_temp, jobq_evil, pg_catalog;
SELECT * FROM public.jobq_search_path_run();
-- with a path that leads nowhere
\c
SET jobq.claim_in_transaction = 'allow';
SET search_path = '';
SELECT * FROM public.jobq_search_path_run();
RESET search_path;
-- plans that were made under a good path and are made again under a bad one
SELECT count(*) FROM public.jobq_search_path_run();
SET search_path = jobq_evil, pg_catalog, pg_temp;
DISCARD PLANS;
SELECT * FROM public.jobq_search_path_run();
RESET search_path;

-- the views hold what was resolved when they were made
SELECT viewname FROM pg_views WHERE schemaname = 'jobq' AND definition ~ 'jobq_evil|public\.';

-- case 142: the install script itself, in a database where the attacker was first
CREATE DATABASE jobq_search_path;
GRANT CREATE ON DATABASE jobq_search_path TO jobq_search_path_attacker;
\set here :DBNAME
\c jobq_search_path
SET client_min_messages = warning;
GRANT CREATE ON SCHEMA public TO jobq_search_path_attacker;
SET ROLE jobq_search_path_attacker;
CREATE FUNCTION public.note() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE FUNCTION public.equals(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.note(); RETURN true; END $$;
CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.equals);
CREATE FUNCTION public.equals(name, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.note(); RETURN true; END $$;
CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, FUNCTION = public.equals);
CREATE FUNCTION public.pg_extension_config_dump(regclass, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM public.note(); END $$;
CREATE FUNCTION public.now() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN PERFORM public.note(); RETURN NULL; END $$;
CREATE FUNCTION public.format(text, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.note(); RETURN NULL; END $$;
CREATE FUNCTION public.count(name) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM public.note(); RETURN NULL; END $$;
CREATE TABLE public.queue ();
RESET ROLE;
CREATE TEMP TABLE queue ();
CREATE TEMP TABLE job ();
CREATE DOMAIN pg_temp.text AS int;
CREATE DOMAIN pg_temp.jsonb AS int;
SET search_path = public, pg_catalog, pg_temp;
CREATE EXTENSION jobq;
RESET search_path;
SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'jobq.job'::regclass AND attname IN ('task', 'payload');
SELECT jobq.enqueue('t') IS NOT NULL AS enqueued;
SELECT task FROM jobq.claim();
DROP EXTENSION jobq;
-- the schema "jobq" was the attacker's: she could drop and plant objects in it, so it is refused
DROP SCHEMA IF EXISTS jobq;
SET ROLE jobq_search_path_attacker;
CREATE SCHEMA jobq;
RESET ROLE;
CREATE EXTENSION jobq;
\echo :LAST_ERROR_SQLSTATE
SET ROLE jobq_search_path_attacker;
CREATE FUNCTION jobq.equals(name, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE OPERATOR jobq.= (LEFTARG = name, RIGHTARG = text, FUNCTION = jobq.equals);
CREATE FUNCTION jobq.equals(oid, oid) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE OPERATOR jobq.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = jobq.equals);
CREATE OPERATOR jobq.<> (LEFTARG = oid, RIGHTARG = oid, FUNCTION = jobq.equals);
CREATE FUNCTION jobq.negates(boolean) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
RESET ROLE;
CREATE EXTENSION jobq;
\echo :LAST_ERROR_SQLSTATE
\c :here
DROP DATABASE jobq_search_path;
SET client_min_messages = warning;
DROP SCHEMA jobq_evil CASCADE;
DROP OWNED BY jobq_search_path_attacker;
DROP ROLE jobq_search_path_attacker;
DROP FUNCTION public.jobq_search_path_run();
DROP TABLE public.jobq_search_path_calls;
SELECT jobq.drop_queue('search_path', true);
