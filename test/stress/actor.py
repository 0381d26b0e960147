"""One process of the crowd, with a connection of its own that it makes anew when it is lost."""
import contextlib
import logging
import os
import random
import time
import traceback

import psycopg

from log import Log

# Errors that a caller has to expect: a transaction to be repeated, and what a nemesis does to statements. All others are findings.
EXPECTED = {'40001'}
CANCELLED = '57014'
EXPECTED_OF_NEMESIS = {CANCELLED, '55P03', '25006'}
CLOCK = 'extract(epoch FROM clock_timestamp())::float8'


# It would say of each lost connection that it cannot roll back there.
logging.getLogger('psycopg').setLevel(logging.ERROR)


class Lost(Exception):
    """The connection is gone; whether the statement was carried out is not known."""


class Actor:
    role = None

    def __init__(self, run, number, life):
        self.run = run
        self.name = f'{self.role}-{number:02d}.{life}'
        self.random = random.Random(f'{run.seed} {self.name}')
        self.log = Log(run.folder, self.name)
        self.operations = 0
        self.db = None
        self.doubt = False

    def live(self):
        while not self.over():
            try:
                self.connect()
                while not self.over():
                    self.step()
            except Lost:
                pass
            except Exception as error:  # a fault of the test itself, which would else pass for a quiet run
                self.log.note('error', message=repr(error), where=traceback.format_exc()[-900:])
                raise

    def step(self):
        raise NotImplementedError

    def over(self):
        return time.monotonic() >= self.run.until.value

    def rest(self, most):
        time.sleep(self.random.random() * most)

    def connect(self):
        while not self.over():
            try:
                self.db = psycopg.connect(**self.run.dsn, autocommit=True, application_name=self.name)
                self.db.add_notice_handler(self.notice)
                self.db.execute('SET jobq.claim_in_transaction = allow')
                self.db.execute(f"SET default_transaction_isolation = '{self.run.isolation}'")
                return
            except psycopg.Error as error:
                if not self.run.nemesis:
                    self.log.note('error', message=f'no connection: {error}')
                time.sleep(0.05)
        raise Lost

    def notice(self, notice):
        """A commit that stopped waiting for its replica is not a promise."""
        self.doubt |= 'synchronous replication' in notice.message_primary

    def act(self, do, work, may_raise=(), **fields):
        """Writes down what it sets out to do, does work(label), writes down what came of it. The answer, or None if the server refused."""
        self.operations += 1
        op = self.operations
        self.doubt = False
        self.log.note('begins', op=op, do=do, backend=self.db.info.backend_pid, **fields)
        try:
            answer = work(f'{self.name}/{op}')
        except psycopg.Error as error:
            return self.failed(op, error, may_raise)
        # psycopg leaves a block in silence if its connection was lost before the COMMIT
        if self.db.closed:
            self.log.note('unknown', op=op, message='lost before its end')
            raise Lost
        if self.doubt:
            self.log.note('unknown', op=op, message='not known to be replicated')
            return None
        self.log.note('done', op=op, answer=answer)
        return answer

    def failed(self, op, error, may_raise):
        lost = self.db.closed or self.db.broken or (error.diag.severity_nonlocalized or 'FATAL') in ('FATAL', 'PANIC')
        self.log.note('unknown' if lost or self.doubt else 'raised', op=op, sqlstate=error.sqlstate, message=str(error)[:300])
        if not lost and error.sqlstate not in (*EXPECTED, *may_raise, *(EXPECTED_OF_NEMESIS if self.run.nemesis else ())):
            self.log.note('error', sqlstate=error.sqlstate, message=str(error), where=traceback.format_exc()[-900:])
        # psycopg takes a connection whose BEGIN was cancelled for one that is in a transaction for ever
        if lost or error.sqlstate == CANCELLED:
            with contextlib.suppress(psycopg.Error):
                self.db.close()
            raise Lost from error

    def rows(self, statement, *values):
        return self.db.execute(statement, values).fetchall()

    def row(self, statement, *values):
        return self.rows(statement, *values)[0]

    @contextlib.contextmanager
    def rolled_back(self):
        with self.db.transaction(force_rollback=True):
            yield

    def die(self):
        os.kill(os.getpid(), 9)
