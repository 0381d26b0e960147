"""One run: servers, a crowd, a nemesis, a drain, an audit."""
import collections
import dataclasses
import os
import random
import signal
import time
import typing

import psycopg

import cluster as servers
from attempts import MAX_ATTEMPTS, MAX_CRASHES, RETRY_BASE, RETRY_CAP
from audit import Audit
from crowd import Crowd, Victims, fork
from damages import not_found
from drain import Drain
from known import FLEETING
from log import Log, Story, read
from nemesis import Nemesis
from operators import SEEN

MODES = ['calm', 'crash', 'async', 'standby', 'clock']
QUEUES = ['chaos a', 'chaos b', FLEETING]
GRACE = 2
MOST_TOLD = 50
UNTOLD = {'event', 'actor', 'mono', 'at', 'at_mono', 'what', 'number'}


@dataclasses.dataclass
class Run:
    mode: str
    seed: int
    seconds: float
    folder: str
    isolation: str = 'read committed'
    managed: bool = True
    workers: int = 8
    damages: bool = False      # whether the audit shall show that it finds them
    checkout: str = str(servers.CHECKOUT)
    pace: float = 0.02         # a producer's rest, at most
    sweep_pause: float = 0.5   # a sweeper's
    queues: typing.ClassVar = QUEUES

    @property
    def nemesis(self):
        return self.mode != 'calm'

    def settings(self):
        return {'max_connections': 60, 'max_worker_processes': 16, 'log_line_prefix': '%m [%p] %b %e ', 'log_statement': 'none',
                'jobq.enabled': 'on' if self.managed else 'off', 'jobq.sweep_grace': f'{GRACE}s', 'jobq.reread_lanes': 'on',
                'wal_writer_delay': '1s', 'synchronous_commit': 'off' if self.mode == 'async' else 'on'}

    def __str__(self):
        return f'{self.mode}, {self.isolation}, {"managed" if self.managed else "no manager"}, {self.seconds:g} s, seed {self.seed}'

    def numbers(self):
        return {'worker': self.workers, 'producer': 2, 'operator': 1, 'sweeper': 1 if self.managed else 3, 'observer': 1}


@dataclasses.dataclass
class Outcome:
    story: Story
    found: list    # contradictions and unexpected errors
    missed: list   # planted damages that the audit did not find

    def contradictions(self):
        """Without errors and what merely did not happen."""
        return [finding for finding in self.found if SEEN in finding or not finding.startswith(('unexpected error', 'nobody ever', 'no lease ever'))]

    def told(self):
        """What the nemesis did, how much was done, what is wrong."""
        start = self.story.by['started'][0]['mono']
        for event in self.story.by['struck']:
            told = ' '.join(f'{key}={value}'.split('\n')[0] for key, value in event.items() if key not in UNTOLD and value is not None)
            yield f'{event["mono"] - start:7.1f} s  {event["number"]} {event["what"]} {told}'
        counts = collections.Counter(operation['do'] for operation in self.story.operations if operation['outcome'] == 'done')
        unknown = sum(operation['outcome'] == 'unknown' for operation in self.story.operations)
        yield ', '.join([f'{number} {kind}' for kind, number in sorted(counts.items())] + [f'{unknown} of unknown outcome'])
        for finding in self.found[:MOST_TOLD]:
            yield f'WRONG: {finding}'
        if len(self.found) > MOST_TOLD:
            yield f'... and {len(self.found) - MOST_TOLD} more'


def play(run):
    run.until = fork.Value('d', 0)
    cluster = servers.Cluster(run.settings(), run.checkout, standby=run.mode == 'standby', faked_clock=run.mode == 'clock')
    try:
        run.dsn = {**cluster.dsn(), 'dbname': 'chaos'}
        log = Log(run.folder, 'main')
        prepare(run, cluster, log)
        rage(run, cluster, log)
        drain(run, log)
        servers.wait_until('all clients are gone', lambda: not cluster.pids('client backend'))
        log.note('ended')
        return audited(run, cluster.log_text())
    finally:
        with open(os.path.join(run.folder, 'server.txt'), 'w', encoding='utf-8') as file:
            file.write(cluster.log_text())
        cluster.remove()


def drain(run, log):
    """Where nobody was killed who would have to come back, all is as prompt as can be: a job that is found by chance comes too late."""
    last = Drain(run, 0, 1)
    drained = last.drained(90 if run.nemesis else 20)
    if drained and not run.nemesis and run.managed:
        last.sleep()
        drained = last.drained(20)
    last.db.close()
    if not drained:
        log.note('error', message='live jobs are left that neither sweep nor claim brings to an end')


def audited(run, server_log):
    with psycopg.connect(**run.dsn) as db:
        # until now jobs were pruned
        db.execute('LOCK TABLE jobq.finished IN EXCLUSIVE MODE')
        found = Audit(db, read(run.folder), server_log).contradictions()
        missed = not_found(db, read(run.folder)) if run.damages and not found else []
    return Outcome(read(run.folder), found, missed)


def prepare(run, cluster, log):
    # a standby that does not know it yet would turn clients away for good
    cluster.rows('CREATE DATABASE chaos', options='-c synchronous_commit=remote_apply')
    with psycopg.connect(**run.dsn, autocommit=True) as db:
        db.execute('CREATE EXTENSION jobq')
        db.execute('CREATE SCHEMA chaos')
        db.execute('CREATE TABLE chaos.effect (job_id bigint, attempt int, label text)')
        db.execute('CREATE INDEX ON chaos.effect (job_id)')
        db.execute('CREATE TABLE chaos.reset (job_id bigint, attempt int)')
        for queue in QUEUES:
            # all that ended are kept, so that the audit finds each of them, but for completed ones of one queue: those leave an effect;
            # few tries and crashes, so that many die
            keep = '0' if queue == FLEETING else '1000 years'
            db.execute("""SELECT jobq.create_queue(%s, max_attempts => %s, max_crashes => %s, retry_base => make_interval(secs => %s),
                retry_cap => make_interval(secs => %s), keep_completed => %s, keep_dead => '1000 years')""",
                       (queue, MAX_ATTEMPTS, MAX_CRASHES, RETRY_BASE, RETRY_CAP, keep))
    log.note('started', seed=run.seed, mode=run.mode, isolation=run.isolation, managed=run.managed, grace=GRACE,
             seconds=run.seconds, offset=time.time() - time.monotonic())


def rage(run, cluster, log):
    """The crowd works for so many seconds, and a process strikes at it and at the servers."""
    run.until.value = time.monotonic() + run.seconds
    crowd = Crowd(run, run.numbers())
    crowd.mend()
    nemesis = fork.Process(target=haunt, args=(run, cluster), daemon=True)
    nemesis.start()
    try:
        look_after(crowd, nemesis, cluster, log)
        if nemesis.exitcode != 0:
            log.note('error', message=f'the nemesis ended with {nemesis.exitcode}')
        crowd.wait(60)
    finally:
        nemesis.kill()
        crowd.kill()


def look_after(crowd, nemesis, cluster, log):
    measured = 0
    while nemesis.is_alive():
        crowd.mend()
        if time.monotonic() > measured + 1:
            measured = time.monotonic()
            measure(cluster, log)
        time.sleep(0.05)


def haunt(run, cluster):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Nemesis(cluster, Victims(run.folder), Log(run.folder, 'nemesis'), random.Random(run.seed), run.mode, ['chaos']).run(run.seconds)


def measure(cluster, log):
    asked = time.monotonic()
    clients = cluster.pids('client backend')
    if clients:
        log.note('clients', asked=asked, pids=clients)
    for what in ('jobq manager', 'jobq launcher', 'client backend'):
        for pid in cluster.pids(what):
            kilobytes = servers.rss(pid)
            if kilobytes:
                log.note('memory', what=what, pid=pid, kilobytes=kilobytes)
