#!/usr/bin/env python3
"""Workers, producers, sweepers and an operator at once, as processes with connections of their own.

Everything that the server acknowledged goes to a log outside the database, one file a process, one JSON object a line, written after
the commit came back. audit.py compares the log with the tables. Connects as libpq does (PGHOST, PGPORT, PGUSER, PGDATABASE); the
database has the extension. Times are the server's.

    load.py --log DIR [--seconds 10] [--claimers 16] [--seed N] [--isolation "read committed"]
"""
import argparse
import json
import multiprocessing
import os
import random
import sys
import time
import traceback

import psycopg

QUEUES = ['stress a', 'stress b']
KEYS = 12
# errors that a caller has to expect; all others are findings
RETRY = {'40001'}


class Log:
    """One process's file. A line is written whole, with one write, after the server has answered."""

    def __init__(self, folder, name):
        self.file = os.open(os.path.join(folder, name + '.log'), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def note(self, event, **fields):
        os.write(self.file, (json.dumps({'event': event, **fields}) + '\n').encode())


class Actor:
    def __init__(self, options, role, number):
        self.options = options
        self.name = f'{role} {number}'
        self.random = random.Random(f'{options.seed} {self.name}')
        self.log = Log(options.log, f'{role}-{number:02d}')
        self.db = psycopg.connect(autocommit=True, application_name=self.name)
        self.db.execute('SET jobq.claim_in_transaction = allow')
        self.db.execute(f"SET default_transaction_isolation = '{options.isolation}'")
        self.held = []
        self.past = []
        self.until = time.monotonic() + options.seconds

    def rows(self, statement, *values):
        return self.db.execute(statement, values).fetchall()

    def run(self):
        while time.monotonic() < self.until:
            try:
                self.step()
            except psycopg.Error as error:
                if error.sqlstate in RETRY:
                    self.log.note('serialization')
                else:
                    self.log.note('error', sqlstate=error.sqlstate, message=str(error), where=traceback.format_exc()[-600:])
            if self.random.random() < 0.3:
                time.sleep(self.random.random() * 0.02)
        self.db.close()


def one_a_job(tokens):
    """A batch answers with ids of jobs, which do not tell two attempts of one job apart."""
    return list(dict(tokens).items())


class Claimer(Actor):
    """Takes jobs and ends them in every way there is, some of them too late, some never."""

    def step(self):
        if self.random.random() < 0.03:
            self.end_at_the_last_moment()
        elif not self.held or self.random.random() < 0.2:
            self.claim()
        elif self.past and self.random.random() < 0.1:
            # a worker that does not know that it is late: most of these have ended, some were forgotten and are not swept yet
            self.end(self.random.choice(self.past))
        else:
            token = self.held.pop(self.random.randrange(len(self.held)))
            self.past = self.past[-50:] + [token]
            self.end(token)

    def noted(self, rows):
        for job_id, attempt, expires, claimed, task in rows:
            self.log.note('claimed', job=job_id, attempt=attempt, at=claimed, until=expires)
            # a poison job kills whoever takes it: nobody ever ends it
            if task != 'poison':
                self.held.append((job_id, attempt))

    def end_at_the_last_moment(self):
        """Ends jobs when their leases expire, which is when a sweep looks at them too."""
        rows = self.rows(self.CLAIMED + 'jobq.claim(%s, 10, %s, %s)', '1 s', self.random.choice(QUEUES), self.name, '1 s')
        kept, self.held = self.held, []
        self.noted(rows)
        if rows:
            # the clients' clock is the server's: they are on one machine
            time.sleep(max(0, rows[0][2] - time.time() + self.random.uniform(-0.005, 0.02)))
        for token in self.held[:]:
            if token in self.held:
                self.held.remove(token)
                self.end(token)
        self.held = one_a_job(kept + self.held)

    def hold(self, token):
        if token not in self.held:
            self.held.append(token)

    CLAIMED = 'SELECT job_id, attempt, extract(epoch FROM lease_expires_at)::float8, extract(epoch FROM lease_expires_at - %s::interval)::float8, task FROM '

    def claim(self):
        length = self.random.choice(['1 s', '1 s', '2 s', '4 s'])
        most = self.random.choice([1, 1, 2, 5, 10])
        queue = self.random.choice(QUEUES)
        way = self.random.random()
        if way < 0.5:
            rows = self.rows(self.CLAIMED + 'jobq.claim(%s, %s, %s, %s)', length, queue, most, self.name, length)
        elif way < 0.6:
            rows = self.rows(self.CLAIMED + 'jobq.claim_from(%s, %s, %s, %s)', length, self.random.sample(QUEUES, 2), most, self.name, length)
        elif way < 0.7:
            # in a transaction block, committed
            with self.db.transaction():
                rows = self.rows(self.CLAIMED + 'jobq.claim(%s, %s, %s, %s)', length, queue, most, self.name, length)
                time.sleep(self.random.random() * 0.02)
        elif way < 0.8:
            # rolled back: no try may be counted, and nothing of it may stay
            with self.db.transaction(force_rollback=True):
                rows = self.rows(self.CLAIMED + 'jobq.claim(%s, %s, %s, %s)', length, queue, most, self.name, length)
                if self.random.random() < 0.5:
                    for job_id, attempt, *_ in rows:
                        self.rows('SELECT jobq.complete(%s, %s)', job_id, attempt)
            self.log.note('rolled back', jobs=[row[:2] for row in rows])
            return
        elif way < 0.87:
            # one claim of a transaction rolled back to a savepoint, the next one kept
            with self.db.transaction():
                with self.db.transaction(force_rollback=True):
                    self.rows(self.CLAIMED + 'jobq.claim(%s, %s, %s, %s)', length, queue, most, self.name, length)
                rows = self.rows(self.CLAIMED + 'jobq.claim(%s, %s, %s, %s)', length, queue, most, self.name, length)
        else:
            ending = self.held[:3]
            rows = self.rows(self.CLAIMED + 'jobq.complete_and_claim(%s::bigint[], %s::int[], %s, %s, %s, %s)', length,
                             [h[0] for h in ending], [h[1] for h in ending], queue, most, self.name, length)
            del self.held[:len(ending)]
            # it does not say which of them were still held
            for job_id, attempt in ending:
                self.log.note('perhaps completed', job=job_id, attempt=attempt)
        self.noted(rows)

    def end(self, token):
        job_id, attempt = token
        way = self.random.random()
        if way < 0.35:
            if self.random.random() < 0.2:
                with self.db.transaction(force_rollback=True):
                    self.rows('SELECT jobq.complete(%s, %s)', *token)
            done, at = self.rows('SELECT jobq.complete(%s, %s, %s), extract(epoch FROM clock_timestamp())::float8', *token, json.dumps({'by': self.name}))[0]
            self.log.note('completed' if done else 'refused', job=job_id, attempt=attempt, at=at)
        elif way < 0.45:
            tokens = one_a_job([token] + self.held[:4])
            del self.held[:4]
            self.random.shuffle(tokens)
            found = self.rows('SELECT c, extract(epoch FROM clock_timestamp())::float8 FROM jobq.complete_batch(%s::bigint[], %s::int[]) c',
                              [t[0] for t in tokens], [t[1] for t in tokens])
            at = dict(found)
            for job_id, attempt in tokens:
                self.log.note('completed' if job_id in at else 'refused', job=job_id, attempt=attempt, at=at.get(job_id))
        elif way < 0.6:
            retry = self.random.random() < 0.85
            state, at = self.rows('SELECT jobq.fail(%s, %s, %s, %s, %s), extract(epoch FROM clock_timestamp())::float8', *token,
                                  'broken ' * self.random.choice([1, 1, 1, 3000]), self.random.choice([None, '0', '0.3 s']), retry)[0]
            self.log.note('failed' if state else 'refused', job=job_id, attempt=attempt, at=at, state=state)
        elif way < 0.7:
            kept, at = self.rows('SELECT jobq.snooze(%s, %s, %s), extract(epoch FROM clock_timestamp())::float8', *token, self.random.choice(['0', '0.2 s']))[0]
            self.log.note('snoozed' if kept else 'refused', job=job_id, attempt=attempt, at=at)
        elif way < 0.85:
            if self.random.random() < 0.5:
                until = self.rows('SELECT extract(epoch FROM jobq.renew(%s, %s, %s))::float8', *token, self.random.choice([None, '1 s', '2 s']))[0][0]
                if until is not None:
                    self.log.note('renewed', job=job_id, attempt=attempt, until=until)
                    self.hold(token)
                else:
                    self.log.note('refused', job=job_id, attempt=attempt)
            else:
                tokens = one_a_job(self.held[:5] + [token])
                del self.held[:5]
                found = dict(self.rows('SELECT job_id, extract(epoch FROM lease_expires_at)::float8 FROM jobq.renew_batch(%s::bigint[], %s::int[])',
                                       [t[0] for t in tokens], [t[1] for t in tokens]))
                for job_id, attempt in tokens:
                    if job_id in found:
                        self.log.note('renewed', job=job_id, attempt=attempt, until=found[job_id])
                        self.hold((job_id, attempt))
                    else:
                        self.log.note('refused', job=job_id, attempt=attempt)
        elif way < 0.93:
            # keeps it in mind without renewing: by the time it ends the lease may be gone
            self.hold(token)
        # else: forgotten, as a worker that was killed forgets


class Producer(Actor):
    def step(self):
        queue = self.random.choice(QUEUES)
        way = self.random.random()
        delay = self.random.choice([None, None, None, '0.2 s'])
        if way < 0.35:
            task = self.random.choice(['plain'] * 9 + ['poison'])
            job = self.rows('SELECT jobq.enqueue(%s, %s, queue => %s, priority => %s, delay => %s)', task, '{"a": 1}', queue, self.random.randrange(10), delay)[0][0]
            self.log.note('enqueued', jobs=[job], plain=True)
        elif way < 0.5:
            rows = self.rows('SELECT jobq.enqueue_batch(%s, %s, queue => %s, delay => %s)', 'batch', '[1, 2, 3, 4, 5, 6]', queue, delay)
            self.log.note('enqueued', jobs=[row[0] for row in rows], plain=True)
        elif way < 0.6:
            with self.db.transaction(force_rollback=True):
                rows = self.rows('SELECT jobq.enqueue_batch(%s, %s, queue => %s)', 'rolled back', '[1, 2]', queue)
                rows += self.rows('SELECT jobq.enqueue(%s, queue => %s, job_key => %s)', 'rolled back', queue, f'key {self.random.randrange(KEYS)}')
            # an id of the keyed one may be another job's, which stays
            self.log.note('not enqueued', jobs=[row[0] for row in rows[:2]])
        else:
            mode = self.random.choice(['keep', 'keep', 'replace', 'preserve_run_at', 'reject'])
            try:
                job, created = self.rows('SELECT job_id, created FROM jobq.enqueue_unique(%s, %s, queue => %s, job_key => %s, job_key_mode => %s, delay => %s)',
                                         mode, '{}', queue, f'key {self.random.randrange(KEYS)}', mode, delay)[0]
                self.log.note('enqueued', jobs=[job], created=created, mode=mode)
            except psycopg.errors.UniqueViolation:
                if mode != 'reject':
                    raise
                self.log.note('rejected')
        time.sleep(self.random.random() * 0.02)


class Sweeper(Actor):
    def step(self):
        if self.random.random() < 0.1:
            with self.db.transaction(force_rollback=True):
                self.rows('SELECT * FROM jobq.sweep()')
        promoted, retried, died = self.rows('SELECT * FROM jobq.sweep(%s)', self.random.choice([1000, 1000, 3]))[0]
        self.log.note('swept', promoted=promoted, retried=retried, died=died)
        time.sleep(self.random.random() * 0.02)


class Operator(Actor):
    """Cancels, brings back, moves, pauses; picks among the newest jobs."""

    def step(self):
        way = self.random.random()
        queue = self.random.choice(QUEUES)
        last = self.rows('SELECT coalesce(max(job_id), 0) FROM jobq.job')[0][0]
        job = max(1, last - self.random.randrange(200))
        if way < 0.4:
            done, at = self.rows('SELECT jobq.cancel(%s, %s), extract(epoch FROM clock_timestamp())::float8', job, 'stress')[0]
            if done:
                self.log.note('cancelled', job=job, at=at)
        elif way < 0.5:
            self.rows('SELECT jobq.cancel_key(%s, %s)', queue, f'key {self.random.randrange(KEYS)}')
            self.log.note('cancelled a key')
        elif way < 0.7:
            try:
                if self.rows('SELECT jobq.retry(%s)', job)[0][0]:
                    self.log.note('retried', job=job)
            except psycopg.errors.UniqueViolation:
                self.log.note('rejected')
        elif way < 0.75:
            # only of one queue: in the other one the limits of the jobs that nobody brought back by id hold for their whole life
            self.log.note('retried dead', number=self.rows('SELECT jobq.retry_dead(%s, 5)', QUEUES[1])[0][0])
        elif way < 0.9:
            self.rows("SELECT jobq.reschedule(%s, run_at => clock_timestamp() + interval '0.2 s', priority => %s)", job, self.random.randrange(10))
        else:
            self.rows('SELECT jobq.pause_queue(%s)', queue)
            time.sleep(0.05)
            self.rows('SELECT jobq.resume_queue(%s)', queue)
        time.sleep(self.random.random() * 0.05)


ROLES = {'claimer': Claimer, 'producer': Producer, 'sweeper': Sweeper, 'operator': Operator}


def act(options, role, number):
    try:
        ROLES[role](options, role, number).run()
    except KeyboardInterrupt:
        pass


def drain(options, deadline):
    """After the others have gone: every job comes to its end, so that none can hide in a line."""
    last = Claimer(options, 'drain', 0)
    while time.monotonic() < deadline:
        promoted, retried, died = last.rows('SELECT * FROM jobq.sweep()')[0]
        last.log.note('swept', promoted=promoted, retried=retried, died=died)
        for queue in QUEUES:
            last.noted(last.rows(last.CLAIMED + 'jobq.claim(%s, 1000, %s, %s)', '1 s', queue, last.name, '1 s'))
        for token in last.held:
            done, at = last.rows('SELECT jobq.complete(%s, %s), extract(epoch FROM clock_timestamp())::float8', *token)[0]
            last.log.note('completed' if done else 'refused', job=token[0], attempt=token[1], at=at)
        last.held = []
        if last.rows('SELECT count(*) FROM jobq.jobs WHERE queue = ANY (%s)', QUEUES)[0][0] == 0:
            return True
        time.sleep(0.1)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--log', required=True)
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('--claimers', type=int, default=16)
    parser.add_argument('--seed', type=int, default=random.randrange(10**6))
    parser.add_argument('--isolation', default='read committed')
    options = parser.parse_args()
    os.makedirs(options.log, exist_ok=True)
    print(f'seed {options.seed}', flush=True)

    with psycopg.connect(autocommit=True) as db:
        if db.execute('SELECT count(*) FROM jobq.job').fetchone()[0]:
            sys.exit('the database has jobs already: take a fresh one')
        for queue in QUEUES:
            # no jobs are pruned, so that the auditor finds each of them; few tries and crashes, so that many die
            db.execute("SELECT jobq.create_queue(%s, max_attempts => 5, max_crashes => 3, retry_base => '0.1 s', retry_cap => '0.3 s', keep_completed => '1000 years', keep_dead => '1000 years')", (queue,))
        pid = db.execute('SELECT pg_backend_pid()').fetchone()[0]
        Log(options.log, 'main').note('started', backend=pid, deadlocks=db.execute(
            'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()').fetchone()[0], seed=options.seed)

    crowd = [('claimer', options.claimers), ('producer', 2), ('sweeper', 3), ('operator', 1)]
    processes = [multiprocessing.Process(target=act, args=(options, role, n)) for role, number in crowd for n in range(number)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(options.seconds + 60)
    # a process that hangs is a finding, too
    late = [process for process in processes if process.exitcode is None]
    for process in late:
        process.kill()
    failed = [process for process in processes if process.exitcode]
    main_log = Log(options.log, 'main')
    if late or failed:
        main_log.note('error', sqlstate=None, message=f'{len(late)} processes hang, {len(failed)} ended with an error')
    options.isolation = 'read committed'
    if not drain(options, time.monotonic() + 60):
        main_log.note('error', sqlstate=None, message='live jobs are left that neither sweep nor claim brings to an end')
    main_log.note('ended')


if __name__ == '__main__':
    main()
