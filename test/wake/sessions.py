"""Sessions that sleep, and what is done to them. Connects as libpq does; prints a line `ok - NAME` or `not ok - NAME` for each check."""
import os
import signal
import sys
import threading
import time
import traceback

import psycopg

# Nothing here takes as long unless it never comes.
DEADLINE = float(os.environ.get('JOBQ_DEADLINE', 60))
# Seconds within which what is to come at once comes, on a busy machine too.
MOST = float(os.environ.get('JOBQ_MOST', 20))


def ok(truth, name, *facts):
    print(('ok' if truth else 'not ok') + f' - {name}', flush=True)
    if not truth:
        for fact in facts:
            tell(fact)


def same(found, expected, name):
    ok(found == expected, name, f'found {found!r}', f'expected {expected!r}')


def tell(text, loud=True):
    for line in str(text).splitlines():
        print(('! ' if loud else '# ') + line, flush=True)


def comes(condition, deadline=None):
    """Whether the condition comes true before the deadline."""
    end = time.monotonic() + (deadline or DEADLINE)
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def until(condition, what):
    if not comes(condition):
        raise AssertionError(f'waited in vain until {what}')


class Session:
    everyone = []

    def __init__(self, **options):
        self.db = psycopg.connect(autocommit=True, **options)
        self.pid = self.db.info.backend_pid
        self.thread = None
        self.rows = self.error = None
        Session.everyone.append(self)

    def run(self, statement, *values):
        cursor = self.db.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else None

    def one(self, statement, *values):
        return self.run(statement, *values)[0][0]

    def state(self, statement, *values):
        """The SQLSTATE that the statement ends with."""
        try:
            self.run(statement, *values)
        except psycopg.Error as error:
            return error.sqlstate
        return '00000'

    def start(self, statement, *values):
        """Runs it while others go on."""
        self.rows = self.error = None

        def work():
            try:
                self.rows = self.run(statement, *values)
            except psycopg.Error as error:
                self.error = error
        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()
        return self

    def is_done(self):
        return not self.thread.is_alive()

    def result(self, deadline=None):
        """What the statement ended with: the first value, an SQLSTATE, or 'still at it'."""
        self.thread.join(deadline or DEADLINE)
        if self.thread.is_alive():
            return 'still at it'
        if self.error is not None:
            # psycopg says from 3.2 on that the server ended the session
            return 'connection lost' if self.error.sqlstate in (None, '57P01') else self.error.sqlstate
        return self.rows[0][0] if self.rows else None

    def close(self):
        self.db.close()


class Admin(Session):
    def __init__(self, **options):
        super().__init__(**options)
        # it never waits for anybody: if it does, that is an error and not the end
        self.run("SELECT set_config('statement_timeout', %s, false)", f'{DEADLINE}s')

    def waits(self, session):
        """What the session's process waits for, by its type."""
        pid = session if isinstance(session, int) else session.pid
        rows = self.run('SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s', pid)
        return rows[0][0] if rows else 'gone'

    def is_asleep(self, session):
        return self.waits(session) == 'Extension'

    def is_gone(self, pid):
        return self.waits(pid) == 'gone'

    def until_asleep(self, session):
        until(lambda: self.is_asleep(session) or (isinstance(session, Session) and session.is_done()), 'a session sleeps')
        if isinstance(session, Session) and session.is_done():
            raise AssertionError(f'it should sleep, but: {session.result()}')
        return session

    def sleeper(self, queue='q', timeout='1 h', **options):
        """A session that has joined the line of sleepers, has looked, and sleeps."""
        return self.until_asleep(Session(**options).start('CALL jobq.wait(%s, %s)', queue, timeout))

    def sleepers(self, count, queue='q', timeout='1 h'):
        return [self.sleeper(queue, timeout) for _ in range(count)]

    def cancel(self, session):
        self.run('SELECT pg_cancel_backend(%s)', session.pid)

    def terminate(self, session):
        self.run('SELECT pg_terminate_backend(%s)', session.pid)


def freeze(session):
    os.kill(session.pid, signal.SIGSTOP)


def thaw(session):
    os.kill(session.pid, signal.SIGCONT)


def end(*sessions):
    for session in sessions:
        try:
            if session.thread is not None and session.thread.is_alive():
                session.db.cancel()
                session.thread.join(DEADLINE)
            session.close()
        except psycopg.Error:
            pass


def run_all(tests):
    for test in tests:
        Session.everyone = []
        try:
            test()
        except Exception:
            ok(False, test.__name__.replace('_', ' '), traceback.format_exc())
        end(*Session.everyone)
    sys.stdout.flush()
    os._exit(0)
