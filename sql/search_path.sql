-- Promise 11, case 142: no name in the install script depends on the search_path, in a database where an attacker was first.
-- The functions and views: test/tables.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE ROLE jobq_search_path_attacker;
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
DROP ROLE jobq_search_path_attacker;
