-- Catalog: what the extension's objects are, as rules that a later version must keep.
-- Each query but the lists answers with the breaches: no rows.
\set VERBOSITY terse
CREATE TEMP VIEW member AS
SELECT classid, objid FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'jobq') AND deptype = 'e';
CREATE TEMP VIEW relation AS SELECT c.* FROM pg_class c JOIN member ON classid = 'pg_class'::regclass AND objid = c.oid;
CREATE TEMP VIEW function AS SELECT p.* FROM pg_proc p JOIN member ON classid = 'pg_proc'::regclass AND objid = p.oid;

SELECT extversion = (SELECT default_version FROM pg_available_extensions WHERE name = 'jobq') AS newest, extrelocatable, nspname
FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'jobq';

-- the interface: functions with their arguments and defaults, the rows that they give, the tables
\pset format unaligned
\pset tuples_only on
SELECT proname, pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result FROM function ORDER BY proname;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'jobq.claimed_job'::regclass AND attnum > 0 ORDER BY attnum;
SELECT relname, string_agg(format('%s %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attname) AS columns
FROM relation c JOIN pg_attribute a ON attrelid = c.oid
WHERE relkind IN ('r', 'p', 'v') AND attnum > 0 AND NOT attisdropped
GROUP BY 1 ORDER BY 1;
\pset format aligned
\pset tuples_only off

-- case 144: PUBLIC may execute, read and use nothing
SELECT oid::regprocedure FROM function WHERE has_function_privilege('public', oid, 'EXECUTE');
SELECT relname FROM relation
WHERE relkind IN ('r', 'v', 'm', 'p', 'f')
  AND has_table_privilege('public', oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER');
SELECT relname FROM relation WHERE CASE WHEN relkind = 'S' THEN has_sequence_privilege('public', oid, 'USAGE, SELECT, UPDATE') END;
SELECT 'schema' WHERE has_schema_privilege('public', 'jobq', 'USAGE, CREATE');

-- no function runs with another's rights by declaration, none hides NULL, none carries settings (a claim would pay for each)
SELECT oid::regprocedure FROM function WHERE prosecdef;
SELECT oid::regprocedure FROM function WHERE proisstrict;
SELECT oid::regprocedure FROM function WHERE proconfig IS NOT NULL;
-- no two share a name: drivers that send untyped parameters could not choose
SELECT proname FROM pg_proc WHERE pronamespace = 'jobq'::regnamespace GROUP BY 1 HAVING count(*) > 1;
-- all are volatile and for one process alone
SELECT oid::regprocedure FROM function WHERE provolatile <> 'v' OR proparallel <> 'u';
-- all are the library's own, in the language of the server
SELECT oid::regprocedure FROM function WHERE probin IS DISTINCT FROM '$libdir/jobq' OR prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c');

-- case 138: nothing is unlogged or temporary
SELECT relname FROM relation WHERE relpersistence <> 'p';
-- promise 10: each table has a primary key (a publication of all tables would stop every claim otherwise)
SELECT relname FROM relation c WHERE relkind IN ('r', 'p') AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary);
-- case 127: pg_dump takes every row of every table and sequence along
SELECT relname FROM relation WHERE relkind IN ('r', 'p', 'S') AND oid <> ALL ((SELECT extconfig FROM pg_extension WHERE extname = 'jobq')::oid[]);
SELECT DISTINCT condition FROM pg_extension, unnest(extcondition) AS conditions (condition) WHERE extname = 'jobq';
-- case 129: the script inserted no rows that a restore would meet again
CREATE DATABASE jobq_catalog;
\set here :DBNAME
\c jobq_catalog
CREATE EXTENSION jobq;
SELECT c.oid::regclass FROM pg_class c
WHERE relnamespace = 'jobq'::regnamespace AND relkind = 'r'
  AND pg_relation_size(c.oid) > 0;
SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'jobq' AND last_value IS NOT NULL;
-- case 116: it goes without a rest, and comes again
DROP EXTENSION jobq;
SELECT pg_describe_object(classid, objid, objsubid) FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace('jobq');
CREATE EXTENSION jobq;
SELECT jobq.enqueue('t') IS NOT NULL AS enqueued;
SELECT task FROM jobq.claim();
DROP EXTENSION jobq;
CREATE EXTENSION jobq;
SELECT count(*) FROM jobq.claim();
SELECT jobq.enqueue('t') IS NOT NULL AS enqueued;
SELECT task FROM jobq.claim();
-- in a transaction that rolls back it stays
BEGIN;
DROP EXTENSION jobq CASCADE;
ROLLBACK;
SELECT count(*) FROM jobq.jobs;
-- the schema is its own: nowhere else
ALTER EXTENSION jobq SET SCHEMA public;
DROP EXTENSION jobq;
CREATE EXTENSION jobq SCHEMA public;
\c :here
DROP DATABASE jobq_catalog;
CREATE TEMP VIEW member AS
SELECT classid, objid FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'jobq') AND deptype = 'e';
CREATE TEMP VIEW relation AS SELECT c.* FROM pg_class c JOIN member ON classid = 'pg_class'::regclass AND objid = c.oid;
CREATE TEMP VIEW function AS SELECT p.* FROM pg_proc p JOIN member ON classid = 'pg_proc'::regclass AND objid = p.oid;

-- case 67, 159: every sequence and every id is 64 bits wide, and no sequence turns round
SELECT s.seqrelid::regclass FROM pg_sequence s JOIN relation c ON c.oid = seqrelid
WHERE seqtypid <> 'bigint'::regtype OR seqmax <> 9223372036854775807 OR seqcycle OR seqincrement <> 1;
SELECT attrelid::regclass, attname FROM relation c JOIN pg_attribute ON attrelid = c.oid
WHERE relkind IN ('r', 'v', 'c', 'p') AND (attname ~ '(^|_)ids?$' OR attname IN ('tag', 'replaced_by')) AND atttypid NOT IN ('bigint'::regtype, 'bigint[]'::regtype);
SELECT f.oid::regprocedure, argument FROM function f, unnest(proargnames, coalesce(proallargtypes, proargtypes::oid[])) AS arguments (argument, type)
WHERE argument ~ '(^|_)ids?$' AND type NOT IN ('bigint'::regtype, 'bigint[]'::regtype);
SELECT oid::regprocedure, proretset FROM function WHERE proname ~ '^enqueue' AND prorettype NOT IN ('bigint'::regtype, 'record'::regtype);
-- times are instants, never local times
SELECT attrelid::regclass, attname FROM relation c JOIN pg_attribute ON attrelid = c.oid
WHERE atttypid IN ('timestamp'::regtype, 'time'::regtype, 'date'::regtype, 'timetz'::regtype);

-- how each table is stored: the lines are vacuumed by a fixed threshold and keep their pages, the others as the server has it
SELECT option, string_agg(relname, ', ' ORDER BY relname) AS tables
FROM relation LEFT JOIN unnest(reloptions) AS options (option) ON true WHERE relkind IN ('r', 'p') GROUP BY 1 ORDER BY 1;
-- no triggers (but on the settings of queues and groups), no rules, no row security, no foreign keys: nothing that a claim would pay for
SELECT tgrelid::regclass, tgname FROM pg_trigger JOIN relation c ON tgrelid = c.oid WHERE relname NOT IN ('queue', 'group_weight');
SELECT relname FROM relation WHERE relrowsecurity OR relforcerowsecurity OR (relhasrules AND relkind <> 'v');
-- indexes that every verb needs
SELECT indrelid::regclass AS "table", replace(pg_get_indexdef(indexrelid), indexrelid::regclass::text, '...') AS index
FROM pg_index JOIN relation c ON indrelid = c.oid ORDER BY 1, 2;
-- none of them unusable
SELECT indexrelid::regclass FROM pg_index JOIN relation c ON indrelid = c.oid WHERE NOT (indisvalid AND indisready AND indislive);

-- every object has a comment
SELECT pg_describe_object(classid, objid, 0) FROM member
WHERE NOT EXISTS (SELECT FROM pg_description d WHERE d.classoid = classid AND d.objoid = objid AND objsubid = 0)
  AND pg_describe_object(classid, objid, 0) !~ '^(type jobq\..*|index .*|type .*\[\])$';
SELECT 'schema' WHERE obj_description('jobq'::regnamespace, 'pg_namespace') IS NULL;
SELECT 'extension' FROM pg_extension WHERE extname = 'jobq' AND obj_description(oid, 'pg_extension') IS NULL;
SELECT t.oid::regtype FROM pg_type t JOIN member ON classid = 'pg_type'::regclass AND objid = t.oid
WHERE typtype IN ('c', 'e', 'd') AND (typrelid = 0 OR (SELECT relkind FROM pg_class WHERE oid = typrelid) = 'c')
  AND obj_description(t.oid, 'pg_type') IS NULL;
-- every object of the schema is the extension's
SELECT c.oid::regclass FROM pg_class c WHERE relnamespace = 'jobq'::regnamespace AND relkind NOT IN ('i', 'c') AND oid NOT IN (SELECT oid FROM relation);
SELECT p.oid::regprocedure FROM pg_proc p WHERE pronamespace = 'jobq'::regnamespace AND oid NOT IN (SELECT oid FROM function);
