"""The search path: whatever the server's catalog has is shadowed by what says that it was reached."""
from catalog.database import db, functions, relations, said
from catalog.standings import tables

TRAPS = r"""
CREATE SCHEMA hostile AUTHORIZATION tables_attacker;
GRANT USAGE ON SCHEMA hostile TO PUBLIC;
CREATE FUNCTION hostile.fire(name text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'hijacked by %', name; RETURN NULL; END $$;
-- What cannot be made, such as a function of an internal type, cannot be a trap either.
CREATE PROCEDURE hostile.try(command text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE command; EXCEPTION WHEN OTHERS THEN NULL; END $$;
SET check_function_bodies = off;
SET ROLE tables_attacker;
DO $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT format('CREATE FUNCTION hostile.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', proname,
                      replace(pg_get_function_identity_arguments(oid), '"any"', 'anyelement'), pg_get_function_result(oid),
                      format('BEGIN PERFORM hostile.fire(%L); RETURN%s; END', 'function ' || proname,
                             CASE WHEN NOT proretset AND prorettype <> 'void'::regtype THEN ' NULL' END))
        FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
        UNION ALL
        SELECT format('CREATE OPERATOR hostile.%s (%s RIGHTARG = %s, FUNCTION = hostile.%I)', oprname,
                      'LEFTARG = ' || nullif(oprleft, 0)::regtype || ',', oprright::regtype, proname)
        FROM pg_operator JOIN pg_proc p ON p.oid = oprcode WHERE oprnamespace = 'pg_catalog'::regnamespace
    LOOP
        CALL hostile.try(command);
    END LOOP;
END
$$;
RESET ROLE;
"""

# For the schema of traps and for a session's temporary one, which is looked at first for relations and types.
TRAP_NAMES = r"""
DO $$
DECLARE
    command pg_catalog.text;
BEGIN
    FOR command IN
        SELECT pg_catalog.format('CREATE TABLE %s.%I (LIKE %I.%I)', '{schema}', relname, relnamespace::regnamespace, relname)
        FROM pg_class WHERE relkind IN ('r', 'v', 'p') AND relnamespace = ANY ('{from_schemas}'::regnamespace[])
        UNION ALL
        SELECT pg_catalog.format('CREATE DOMAIN %s.%I AS pg_catalog.int4 CHECK (hostile.fire(%L))', '{schema}', typname, 'type ' || typname)
        FROM pg_type WHERE typtype IN ('b', 'd', 'r') AND typnamespace = 'pg_catalog'::regnamespace
    LOOP
        CALL hostile.try(command);
    END LOOP;
END
$$
"""


def set_traps():
    db.run(TRAPS)
    db.run(TRAP_NAMES.format(schema='hostile', from_schemas='{pg_catalog,jobq}'))
    db.run('GRANT SELECT ON ALL TABLES IN SCHEMA hostile TO PUBLIC')


def trapped(session, path):
    session.run(TRAP_NAMES.format(schema='pg_temp', from_schemas='{hostile}'))
    session.run(f'SET search_path = {path}')
    return session


def traps_are_set(session):
    """Whoever writes a bare name falls in."""
    for statement in ('SELECT 1::pg_catalog.int8 = 1::pg_catalog.int8', 'SELECT now()', "SELECT '1'::text", "SELECT lower('x'::pg_catalog.text)"):
        session.warnings.clear()
        session.ends(statement)
        if not any('hijacked' in warning for warning in session.warnings):
            yield f'{statement}: a trap is missing'
    if session.rows('SELECT * FROM job') or session.rows('SELECT * FROM pg_class'):
        yield 'a table is not shadowed'


def every_function(session):
    """Each function as it is meant to be called, and each view."""
    for function in functions:
        tables.fresh()
        call = tables.call(function)
        session.warnings.clear()
        error = session.ends(call)
        yield from [f'{call}: {warning}' for warning in session.warnings if 'hijacked' in warning]
        if error and error.sqlstate != '39P01':
            yield f'{call}: {said(error)}'
        yield from tables.contradictions()
    for name, kind in relations.items():
        if kind == 'v' and (error := session.ends(f'TABLE jobq.{name}')):
            yield f'{name}: {said(error)}'


def made_again(session, path):
    """Plans that were made under a good search path, and are made again under a bad one."""
    yield from every_function(session)
    session.run(f'SET search_path = {path}')
    yield from every_function(session)
    session.run('DISCARD PLANS')
    yield from every_function(session)
