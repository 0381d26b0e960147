#!/usr/bin/env python3
"""Lost wake-ups. Workers sleep until they are woken: none of them polls. In each round producers make a burst of jobs and stop; then
everything has to be claimed. A job that is left while all sleep was lost.

    rounds.py wait|busy|listen [--rounds N] [--restart] [--kill] [--silence SECONDS] [--isolation LEVEL] [--seed N]

With --restart the server dies in each round (it is asked for on standard output) and all connect again; with --kill workers are terminated, or go when they were told of a job.
"""
import argparse
import os
import random
import select
import sys
import threading
import time

import psycopg

from sessions import DEADLINE, comes, ok, tell

WORKERS = 4
PRODUCERS = 3
QUEUES = ['q', 'r']


class Actor(threading.Thread):
    """Goes on for ever, with a new connection if the old one is lost."""
    workers = WORKERS

    def __init__(self, number, options):
        super().__init__(daemon=True)
        self.number, self.options = number, options
        self.random = random.Random(f'{options.seed} {type(self).__name__} {number}')
        self.db = None
        self.trouble = None
        self.start()

    def connect(self):
        end = time.monotonic() + DEADLINE
        while True:
            try:
                return psycopg.connect(autocommit=True, application_name=type(self).__name__,
                                       options=f"-c default_transaction_isolation={self.options.isolation.replace(' ', chr(92) + ' ')}")
            except psycopg.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def run(self):
        try:
            while True:
                self.db = self.connect()
                try:
                    self.live()
                except psycopg.Error as error:
                    if self.db.closed or self.db.broken:
                        continue
                    if error.sqlstate == '40001':
                        self.db.close()
                        continue
                    raise
        except Exception as error:  # what is wrong with the test or the server, not with a connection
            self.trouble = error


class Waiting(Actor):
    def live(self):
        while True:
            self.db.execute("CALL jobq.wait('q', '1 h')")
            if self.random.random() < 0.02 and self.options.kill:
                # told, and gone without a word
                self.db.close()
                return
            self.claim_one()

    def claim_one(self):
        for job, attempt in self.db.execute("SELECT job_id, attempt FROM jobq.claim('q')").fetchall():
            self.db.execute('SELECT jobq.complete(%s, %s)', (job, attempt))


class Busy(Actor):
    """Waits for two queues, takes one job, and works on it until the round is over. There are as many of them as jobs at the most: if one is left,
    somebody sleeps beside it."""
    workers = 8
    released = threading.Event()

    def live(self):
        while True:
            queues = self.random.sample(QUEUES, 2)
            self.db.execute("CALL jobq.wait_any(%s::text[], '1 h')", (queues,))
            if self.random.random() < 0.1 and self.options.kill:
                self.db.close()
                return
            order = self.random.sample(QUEUES, 2)
            jobs = self.db.execute('SELECT job_id, attempt FROM jobq.claim_from(%s::text[])', (order,)).fetchall()
            if jobs:
                self.released.wait()
                self.db.execute('SELECT jobq.complete(%s, %s)', jobs[0])


class Listening(Actor):
    """LISTEN; then claim until a claim comes back short, and sleep until there is a notification. In this order."""

    def live(self):
        self.is_called = True
        self.db.add_notify_handler(self.hear)
        self.db.execute('LISTEN jobq')
        while True:
            self.claim_all()
            while not self.is_called:
                select.select([self.db.fileno()], [], [])
                self.db.pgconn.consume_input()
                while notice := self.db.pgconn.notifies():
                    self.is_called |= notice.extra == b'q'

    def hear(self, notice):
        self.is_called |= notice.payload == 'q'

    def claim_all(self):
        self.is_called = False
        size = self.random.choice([1, 2, 5])
        while True:
            jobs = self.db.execute("SELECT job_id, attempt FROM jobq.claim('q', %s)", (size,)).fetchall()
            for job, attempt in jobs:
                if self.random.random() < 0.05:
                    self.db.execute("SELECT jobq.fail(%s, %s, 'again', retry_in => '0')", (job, attempt))
                else:
                    self.db.execute('SELECT jobq.complete(%s, %s)', (job, attempt))
            if len(jobs) < size:
                return


class Producer(Actor):
    """Makes a burst each time that it is asked to."""

    def __init__(self, number, options):
        self.bursts = threading.Semaphore(0)
        self.left = 0
        self.acknowledged = []
        super().__init__(number, options)

    def burst(self, size):
        self.left = size
        self.bursts.release()

    def live(self):
        while True:
            while self.left == 0:
                self.bursts.acquire()
            self.make(self.random.random())
            self.left -= 1
            if self.random.random() < 0.3:
                time.sleep(self.random.random() * 0.01)

    def make(self, way):
        """What is counted as acknowledged was answered after its commit."""
        if self.options.mode == 'busy':
            if way < 0.2:
                self.in_transaction("SELECT jobq.enqueue('t', queue => 'q')", 'ROLLBACK')
            self.note(self.db.execute("SELECT jobq.enqueue('t', queue => %s)", (self.random.choice(QUEUES),)))
        elif way < 0.5:
            self.note(self.db.execute("SELECT jobq.enqueue('t', queue => 'q')"))
        elif way < 0.6:
            self.note(self.db.execute("SELECT jobq.enqueue('t', queue => 'q', delay => '10 ms')"))
        elif way < 0.7:
            self.note(self.db.execute("SELECT jobq.enqueue_batch('t', '[1, 2, 3]', queue => 'q')"))
        elif way < 0.8:
            self.in_transaction("SELECT jobq.enqueue('t', queue => 'q')", 'ROLLBACK')
        elif way < 0.9:
            self.note(*self.in_transaction("SELECT jobq.enqueue('t', queue => 'q')", 'SAVEPOINT s',
                                           "SELECT FROM jobq.enqueue_batch('t', '[1, 2]', queue => 'q')", 'ROLLBACK TO s', 'COMMIT')[:1])
        else:
            # a claim that is taken back
            self.in_transaction('SET LOCAL jobq.claim_in_transaction = allow', "SELECT FROM jobq.claim('q', 3)", 'ROLLBACK')

    def in_transaction(self, *statements):
        self.db.execute('BEGIN')
        return [self.db.execute(statement) for statement in statements]

    def note(self, cursor):
        self.acknowledged += [row[0] for row in cursor.fetchall()]


class Observer(Actor):
    def live(self):
        threading.Event().wait()

    def one(self, statement, *values):
        while True:
            try:
                return self.db.execute(statement, values or None).fetchone()[0]
            except psycopg.OperationalError:
                time.sleep(0.02)
                if self.db.closed or self.db.broken:
                    self.db = self.connect()

    def are_all_claimed(self):
        return self.one("SELECT NOT EXISTS (SELECT FROM jobq.ready) AND NOT EXISTS (SELECT FROM jobq.delayed)")

    def sleeping(self):
        """Workers in their sleep: in wait, or for a listener without a command."""
        return self.one("SELECT count(*) FROM pg_stat_activity WHERE application_name IN ('Waiting', 'Busy', 'Listening')"
                        " AND (wait_event_type = 'Extension' OR application_name = 'Listening' AND state = 'idle')")


def restart():
    print('restart', flush=True)
    sys.stdin.readline()


def a_round(options, observer, producers, chance):
    # a lonely job has nobody after it whose wake would do for both
    is_lonely = not options.restart and chance.random() < 0.3
    sizes = [1, 0, 0] if is_lonely else [chance.randint(1, 2 if options.mode == 'busy' else 15) for _ in producers]
    Busy.released.clear()
    for producer, size in zip(producers, sizes):
        producer.burst(size)
    if options.restart:
        time.sleep(chance.random() * 0.05)
        restart()
    if options.kill:
        observer.one("SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'Waiting'"
                     ' ORDER BY random() LIMIT 1) AS a')
    if not comes(lambda: all(p.left == 0 for p in producers)):
        return f'producers hang: {[(p.left, p.trouble) for p in producers]}'
    if not comes(observer.are_all_claimed):
        left = observer.one('SELECT count(*) FROM jobq.ready')
        return f'{left} jobs are ready, and {observer.sleeping()} workers sleep'
    Busy.released.set()
    if options.mode == 'busy' and not comes(lambda: observer.one('SELECT NOT EXISTS (SELECT FROM jobq.lease)')):
        return 'workers hang'
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('mode', choices=['wait', 'busy', 'listen'])
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--restart', action='store_true')
    parser.add_argument('--kill', action='store_true')
    parser.add_argument('--silence', type=float, default=0)
    parser.add_argument('--isolation', default='read committed')
    parser.add_argument('--seed', type=int, default=int(os.environ.get('JOBQ_SEED') or random.randrange(2**31)))
    options = parser.parse_args()
    tell(f'seed {options.seed}', loud=False)
    chance = random.Random(options.seed)

    with psycopg.connect(autocommit=True) as db:
        db.execute('SELECT jobq.drop_queue(queue, true) FROM jobq.queues')
        db.execute("SELECT jobq.create_queue(queue, retry_base => '0', lease => '24 h') FROM unnest(%s::text[]) AS queue", (QUEUES,))
    kind = {'wait': Waiting, 'busy': Busy, 'listen': Listening}[options.mode]
    workers = [kind(n, options) for n in range(kind.workers)]
    producers = [Producer(n, options) for n in range(PRODUCERS)]
    observer = Observer(0, options)
    comes(lambda: observer.db is not None)

    what = options.mode + (', killed' if options.kill else '') + (', restarted' if options.restart else '') + f', {options.isolation}'
    began, lost = time.monotonic(), None
    for number in range(options.rounds):
        lost = a_round(options, observer, producers, chance)
        if lost:
            break
    ok(not lost, f'{what}: in {options.rounds} rounds everything was claimed', f'round {number}: {lost}, seed {options.seed}')
    if options.silence and not lost:
        time.sleep(options.silence)
        observer.one("SELECT jobq.enqueue('t', queue => 'q')")
        ok(comes(observer.are_all_claimed), f'{what}: and after a silence')
    acknowledged = [job for producer in producers for job in producer.acknowledged]
    missing = observer.one('SELECT array_agg(job) FROM unnest(%s::bigint[]) AS job WHERE job NOT IN (SELECT job_id FROM jobq.job)', acknowledged)
    ok(not missing, f'{what}: no job that was acknowledged is missing', missing)
    troubles = [repr(a.trouble) for a in workers + producers if a.trouble]
    ok(not troubles, f'{what}: nobody had an error that he had not to expect', *troubles)
    tell(f'{what}: {len(acknowledged)} jobs, {options.rounds} rounds in {time.monotonic() - began:.1f} s', loud=False)
    sys.stdout.flush()
    os._exit(0)


if __name__ == '__main__':
    main()
