"""The database under test as its superuser sees it: its functions and relations, sessions of other roles, and what is reported."""
import re
import sys
from typing import NamedTuple

import psycopg

# The classes of errors that a caller can do something about. 39 is how the server refuses a trigger's function.
CLASSES = {'0A', '22', '23', '25', '39', '42', '54', '55'}


class Parameter(NamedTuple):
    name: str
    type: str
    has_default: bool


class Function(NamedTuple):
    name: str
    is_procedure: bool
    parameters: list

    def call(self, arguments):
        given = ', '.join(f'"{name}" => {value}' for name, value in arguments.items())
        return f'{"CALL" if self.is_procedure else "SELECT"} jobq.{self.name}({given})'


class Session:
    """A session of a role, and the warnings that it was sent."""
    tried = 0

    def __init__(self, **options):
        self.connection = psycopg.connect(autocommit=True, **options)
        self.run = self.connection.execute
        self.warnings = []
        self.connection.add_notice_handler(lambda notice: self.warnings.append(notice.message_primary))

    def rows(self, query):
        return self.run(query).fetchall()

    def ends(self, statement):
        """None, or the error that the statement ends with."""
        Session.tried += 1
        try:
            self.run(statement)
        except psycopg.Error as error:
            if self.connection.closed:
                sys.exit(f'the connection was lost at {statement[:500]}')
            return error.diag
        return None

    def ends_undone(self, statement):
        with self.connection.transaction(force_rollback=True):
            return self.ends(statement)


db = Session()
db.run('SET client_min_messages = error')

failed = False


def report(name, complaints):
    global failed
    complaints = list(complaints)
    for complaint in complaints[:20]:
        print('# ' + complaint.replace('\n', ' ')[:500])
    print(f'{"not ok" if complaints else "ok"} - {name}', flush=True)
    failed |= bool(complaints)


def read_functions():
    rows = db.rows("""
        SELECT p.proname, p.prokind = 'p', coalesce(array_agg(ARRAY[proargnames[n], t.typname, (n > pronargs - pronargdefaults)::text] ORDER BY n)
            FILTER (WHERE n IS NOT NULL), '{}')
        FROM pg_proc p LEFT JOIN unnest(proargtypes) WITH ORDINALITY AS a (type, n) ON true LEFT JOIN pg_type t ON t.oid = a.type
        WHERE pronamespace = 'jobq'::regnamespace GROUP BY p.oid ORDER BY proname""")
    return [Function(name, is_procedure, [Parameter(n, t, d == 'true') for n, t, d in parameters]) for name, is_procedure, parameters in rows]


functions = read_functions()
relations = dict(db.rows("SELECT relname, relkind FROM pg_class WHERE relnamespace = 'jobq'::regnamespace AND relkind NOT IN ('i', 'I', 'c') ORDER BY 1"))


def same_names(here, there):
    for name in sorted(set(here) - set(there)):
        yield f'{name} is said here, but not in the database'
    for name in sorted(set(there) - set(here)):
        yield f'{name} is in the database: say here what it takes or who may have it'


def flaws(error):
    message, hint = error.message_primary, error.message_hint
    if error.sqlstate[:2] not in CLASSES:
        yield 'no caller can do anything about it'
    if not re.match(r'[a-z"]', message) or message.endswith('.'):
        yield 'not in the style of messages'
    if error.source_file == 'error.cpp' and not re.fullmatch(r'[A-Z].*[.]', hint or ''):
        yield f'the hint is no sentence: {hint}'


def said(error):
    return f'{error.sqlstate} {error.message_primary}' if error else 'accepted'
