"""As much as a value can hold. It is made once, where the planner does not make a constant of it, and is handed on by reference."""
import re

from catalog.database import CLASSES, Session, flaws, functions, said
from catalog.standings import tables

MEGABYTE = 1_048_576
BIG_TEXT = f"repeat(repeat('x', {MEGABYTE}), 1023 + 0 * pg_backend_pid())"
BIG_JSON = f"to_jsonb(repeat(repeat('x', {MEGABYTE}), 255 + 0 * pg_backend_pid()))"


def big_function(type):
    """Each function with the big value in each parameter of the type, all undone."""
    blocks = [f"""
        BEGIN
            PERFORM {tables.call_with(f, p, 'big').removeprefix('SELECT ')};
            RAISE SQLSTATE 'UNDO0';
        EXCEPTION WHEN OTHERS THEN
            call := '{f.name}({p.name})'; state := SQLSTATE; said := SQLERRM;
            RETURN NEXT;
        END;""" for f in functions if not f.is_procedure for p in f.parameters if p.type == type]
    return f"""CREATE FUNCTION pg_temp.with_big_{type}(big pg_catalog.{type})
        RETURNS TABLE (call pg_catalog.text, state pg_catalog.text, said pg_catalog.text) LANGUAGE plpgsql AS $$ BEGIN {''.join(blocks)} END $$"""


def peak_memory(session):
    """The most kilobytes that the session's process ever had."""
    process, = session.run('SELECT pg_catalog.pg_backend_pid()').fetchone()
    with open(f'/proc/{process}/status') as status:
        return int(re.search(r'VmHWM:\s+(\d+)', status.read())[1])


def big(type, value):
    session = Session(user='tables_caller')
    for setting in ('plan_cache_mode = force_generic_plan', 'default_toast_compression = lz4', "jobq.claim_in_transaction = 'allow'"):
        session.run(f'SET {setting}')
    tables.fresh()
    session.run(big_function(type))
    for call, state, message in session.rows(f'SELECT * FROM pg_temp.with_big_{type}({value})'):
        if state != 'UNDO0' and (state[:2] not in CLASSES or len(message) > 300):
            yield f'{call}: {state} {message[:300]}'
    if tables.changed():
        yield 'the tables have changed'
    # To make the JSON takes several copies anyway.
    if type == 'text' and peak_memory(session) > 1.5 * 1023 * 1024:
        yield f'the session had {peak_memory(session)} kB of memory: somebody makes a copy'


def big_in_procedures():
    session = Session(user='tables_caller')
    for function in functions:
        for parameter in function.parameters:
            if function.is_procedure and parameter.type == 'text':
                tables.fresh()
                call = tables.call_with(function, parameter, BIG_TEXT)
                error = session.ends(call)
                yield from [f'{flaw}: {said(error)}: {call}' for flaw in (flaws(error) if error else [])]
                if tables.changed():
                    yield f'{call}: the tables have changed'
