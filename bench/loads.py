# The processes of bench/flat, which are the load of bench/punctual as well: producers and claimers that note when they did
# what. All instants are the machine's monotonic clock, the same in each process.

import array
import signal
import time

from statements import read_statements
from workers import BATCH, HERE, PAYLOAD, QUEUE, Session, Worker, context

BATCH_PAYLOADS = "[" + ", ".join([PAYLOAD] * BATCH) + "]"


class Start:
    """The instant from which the processes of a run count, given when all of them are ready."""

    def __init__(self):
        self.given = context.Event()
        self.instant = context.RawValue("d")

    def give(self):
        self.instant.value = time.monotonic()
        self.given.set()
        return self.instant.value

    def wait(self):
        self.given.wait()
        return self.instant.value


class Claimer(Worker):
    """A worker of the variant of this name."""

    def __init__(self, server, side, batch=1):
        self.side = side
        super().__init__(server, QUEUE, batch)


class Diary:
    """Each claim: when it was answered, the seconds that it took, and those of the completion; -1: it came back empty."""

    def __init__(self):
        self.answered, self.claims, self.completions = (array.array("d") for _ in range(3))

    def note(self, before, after, completion):
        self.answered.append(after)
        self.claims.append(after - before)
        self.completions.append(completion)

    def __iter__(self):
        return zip(self.answered, self.claims, self.completions)


def claim_once(worker, diary):
    """Whether there was a job."""
    before = time.monotonic()
    row = worker.claim()
    after = time.monotonic()
    if row:
        worker.complete(row)
    diary.note(before, after, time.monotonic() - after if row else -1)
    return bool(row)


def claim_for(server, started, side, start, seconds, pause, done, slot):
    """Claims one job after the other; done[slot] counts them. After an empty claim it pauses, as a worker that polls."""
    worker, diary = Claimer(server, side), Diary()
    started()
    end = start.wait() + seconds
    while time.monotonic() < end:
        if claim_once(worker, diary):
            done[slot] += 1
        else:
            time.sleep(pause)
    return diary


def claim_times(server, started, side, times, warm_up):
    """Claims so often; the first ones make the session's plans and are not noted."""
    worker, diary = Claimer(server, side), Diary()
    started()
    for number in range(warm_up + times):
        claim_once(worker, diary if number >= warm_up else Diary())
    return diary


def drain(server, started, side):
    """Claims and completes many at a time until there is nothing; how many that were."""
    worker, jobs = Claimer(server, side, BATCH), 0
    started()
    while row := worker.claim():
        worker.complete(row)
        jobs += next(iter(row.values())).count(b",") + 1
    return jobs


def producer_session(server, side, verb, **values):
    session = Session(server, queue=QUEUE, task="task", **values)
    session.prepare(verb, read_statements(HERE / f"{side}.sql")[1][verb])
    return session


def produce_at(server, started, side, start, seconds, rate, phase):
    """Enqueues a job at each of its instants, whatever became of those before: [seconds that it was late]. What it had not
    sent at the end counts as infinitely late."""
    session = producer_session(server, side, "enqueue", payload=PAYLOAD)
    late = array.array("d")
    started()
    begin = start.wait()
    for number in range(round(seconds * rate)):
        now = time.monotonic()
        due = begin + (number + phase) / rate
        if now >= begin + seconds:
            late.append(float("inf"))
            continue
        time.sleep(max(0, due - now))
        late.append(max(0, time.monotonic() - due))
        session.run("enqueue")
    return late


def feed(server, started, side, start, seconds, done):
    """Keeps as many jobs ready as there were at the start, by batches; how many it sent."""
    session = producer_session(server, side, "enqueue_batch", payloads=BATCH_PAYLOADS)
    sent = 0
    started()
    end = start.wait() + seconds
    while time.monotonic() < end:
        if sent < sum(done):
            session.run("enqueue_batch")
            sent += BATCH
        else:
            time.sleep(0.001)
    return sent


def hold_snapshot(server, started):
    """A transaction that has read once and then does nothing, until the process is ended."""
    session = Session(server)
    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
    started()
    signal.pause()


def hold_enqueue(server, started, side):
    """A producer that has enqueued one job and never commits."""
    session = producer_session(server, side, "enqueue", payload=PAYLOAD)
    session.execute("BEGIN")
    session.run("enqueue")
    started()
    signal.pause()
