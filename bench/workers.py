# The processes of bench/wake, and what those of the other measurements have in common with them: a connection of their own,
# statements prepared in it, and a pipe by which they tell their parent what they saw. They use libpq as psycopg wraps it,
# without psycopg's own layers: those cost as much as a wake-up.

import multiprocessing
import os
import pathlib
import select
import signal
import time

from psycopg import pq

from server import Failed
from statements import number_parameters, read_statements

HERE = pathlib.Path(__file__).resolve().parent
QUEUE = "bench"
PAYLOAD = '{"n": 1, "text": "%s"}' % ("x" * 80)
PATIENCE = 5        # seconds that a worker sleeps at most: a lost wake-up shows as a latency, not as a run that never ends
BATCH = 100         # jobs a claim of the workers that take many

context = multiprocessing.get_context("fork")


class Session:
    """A connection that blocks, and statements prepared in it by name. Values travel as text, by the parameters' names."""

    def __init__(self, server, **values):
        os.environ.update(server.environment)
        self.connection = pq.PGconn.connect(b"")
        if self.connection.status != pq.ConnStatus.OK:
            raise Failed(self.connection.error_message.decode())
        self.values = values
        self.names = {}

    def check(self, result):
        if result.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
            raise Failed(result.error_message.decode().strip())
        return result

    def execute(self, text):
        self.check(self.connection.exec_(text.encode()))

    def prepare(self, name, text):
        text, self.names[name] = number_parameters(text)
        self.check(self.connection.prepare(name.encode(), text.encode()))

    def run(self, name, row={}):
        """The first row of the prepared statement's answer by its columns' names, or None. Another row is a source of
        values besides the session's own."""
        values = [row[word] if word in row else self.values[word].encode() for word in self.names[name]]
        result = self.check(self.connection.exec_prepared(name.encode(), values))
        if result.ntuples == 0:
            return None
        return {result.fname(column).decode(): result.get_value(0, column) for column in range(result.nfields)}

    def is_notified(self, payload):
        """Whether a notification with this payload has come; those that came together count as one. Some come with the
        answer to a statement, so this is asked before the socket is."""
        self.connection.consume_input()
        found = False
        while notice := self.connection.notifies():
            found = found or notice.extra == payload.encode()
        return found

    def sleep_until_notified(self, payload, seconds):
        deadline = time.monotonic() + seconds
        while not self.is_notified(payload) and (left := deadline - time.monotonic()) > 0:
            select.select([self.connection.socket], [], [], left)


def jobs_in(row):
    """How many jobs a claim brought; that of many brings them as one row of arrays."""
    first = next(iter(row.values())) if row else None
    return first.count(b",") + 1 if first else 0


def words(array):
    """The elements of an array of numbers or plain words, as the server writes it."""
    return array.decode()[1:-1].split(",")


class Worker:
    """What all ways of being a worker share: claim and complete, by the statements of one side."""

    def __init__(self, server, queue, batch=1):
        self.session = Session(server, queue=queue, worker="bench worker")
        self.batch = batch
        statements = read_statements(HERE / f"{self.side}.sql")[1]
        for verb in ("claim", "complete"):
            self.session.prepare(verb, statements[verb if batch == 1 else verb + "_batch"].format(n=batch))

    def claim(self):
        row = self.session.run("claim")
        return row if jobs_in(row) else None

    def complete(self, row):
        self.session.run("complete", row)


class Listener(Worker):
    """Claims until a claim comes short, then sleeps until it is notified."""
    way = "listen"

    def __init__(self, server, queue, batch=1):
        super().__init__(server, queue, batch)
        channel, self.payload = self.address(queue)
        self.session.execute(f'LISTEN "{channel}"')

    def claims(self):
        """What one claim after the other brings, for ever; the caller completes it."""
        while True:
            row = self.claim()
            if row:
                yield row
            if jobs_in(row) < self.batch:
                self.session.sleep_until_notified(self.payload, PATIENCE)


class PlainListener(Listener):
    side = "plain"

    def address(self, queue):
        return f"plain.{queue}", ""


class JobqListener(Listener):
    side = "jobq"

    def address(self, queue):
        return "jobq", queue


class JobqWaiter(Worker):
    """Sleeps in the server; claims when that says there is something."""
    way = "wait"
    side = "jobq"

    def __init__(self, server, queue, batch=1):
        super().__init__(server, queue, batch)
        self.session.prepare("wait", f"CALL jobq.wait(:queue, '{PATIENCE} s')")

    def claims(self):
        while True:
            if self.session.run("wait")["ready"] != b"t":
                continue
            row = self.claim()
            if row:
                yield row


def receive(server, started, worker, jobs):
    """A worker for so many jobs: [(id, when it was in the worker's hands)], in nanoseconds of the monotonic clock."""
    worker = worker(server, QUEUE)
    arrived = []
    started()
    for row in worker.claims():
        arrived.append((int(row["job_id"]), time.monotonic_ns()))
        worker.complete(row)
        if len(arrived) == jobs:
            return arrived


def produce(server, started, side, jobs, interval):
    """A producer that enqueues one job each so many seconds: [(id, when it was sent, when the commit was acknowledged)]."""
    session = Session(server, queue=QUEUE, task="task", payload=PAYLOAD)
    session.prepare("enqueue", read_statements(HERE / f"{side}.sql")[1]["enqueue"])
    sent = []
    started()
    begin = time.monotonic()
    for number in range(jobs):
        time.sleep(max(0, begin + number * interval - time.monotonic()))
        before = time.monotonic_ns()
        row = session.run("enqueue")
        sent.append((int(next(iter(row.values()))), before, time.monotonic_ns()))
    return sent


def serve(server, started, worker, queue, batch, done, slot):
    """A worker until it is ended; done[slot] counts its jobs."""
    worker = worker(server, queue, batch)
    started()
    for row in worker.claims():
        worker.complete(row)
        done[slot] += jobs_in(row)


def keep_time(_, started, instants):
    """Sleeps until each instant of the wall clock: by how many seconds it woke too late."""
    late = []
    started()
    for instant in sorted(instants):
        time.sleep(max(0, instant - time.time()))
        late.append(time.time() - instant)
    return late


class Member:
    """One process of a crew."""

    def __init__(self, server, role, arguments):
        self.role = role.__name__
        self.has_started = False
        self.pipe, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=live, args=(server, theirs, role, arguments), daemon=True)
        self.process.start()
        theirs.close()

    def receive(self, kind, seconds):
        try:
            if not self.pipe.poll(seconds):
                raise Failed(f"a process to {self.role} is not {kind} after {seconds:.0f} s")
            found, value = self.pipe.recv()
        except EOFError:
            raise Failed(f"a process to {self.role} has ended before it was {kind}") from None
        if found != kind:
            raise Failed(f"{self.role}: {value}")
        return value

    def await_start(self):
        if not self.has_started:
            self.receive("started", 30)
            self.has_started = True

    def result(self, seconds):
        self.await_start()
        return self.receive("done", seconds)


def live(server, pipe, role, arguments):
    """The life of a process: Ctrl-C is its parent's affair, who ends it by SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        pipe.send(("done", role(server, lambda: pipe.send(("started", None)), *arguments)))
    except Exception as error:
        pipe.send(("failed", str(error) or repr(error)))


class Crew:
    """The processes of one part of a measurement. When the block ends, however it ends, they have ended, and their
    sessions in the server as well."""

    def __init__(self, server):
        self.server = server
        self.members = []

    def __enter__(self):
        return self

    def start(self, role, *arguments):
        """Starts a process in this role: a function of the server, of what to call when it is ready, and of the arguments."""
        self.members.append(Member(self.server, role, arguments))
        return self.members[-1]

    def await_start(self):
        for member in self.members:
            member.await_start()

    def check(self):
        """Raises if one of those who work for ever has stopped."""
        for member in self.members:
            if member.pipe.poll():
                member.result(0)

    def __exit__(self, *_):
        for member in self.members:
            member.process.terminate()
        for member in self.members:
            member.process.join(10)
            member.process.kill()
            member.pipe.close()
        if self.members:
            self.server.end_sessions()
