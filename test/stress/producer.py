"""Enqueues in every way: alone, in batches, under keys, in transactions that are long, or roll back.

Each job carries a mark that names the call and its place in it, so that a call whose outcome nobody heard can be looked up.
"""
import json
import time

from actor import Actor

KEYS = 12
GROUPS = [None, 'a', 'b', 'c']
BURST = 40
REPLACING = ('replace', 'preserve_run_at')
LAST_ATTEMPT = 'INSERT INTO chaos.reset SELECT job_id, attempt FROM jobq.jobs WHERE job_id = %s'


def marks(label, number):
    return [f'{label}/{n}' for n in range(number)]


def seconds(delay):
    return float(delay.removesuffix(' s')) if delay else 0


def payloads(label, number):
    return json.dumps([{'mark': mark} for mark in marks(label, number)])


class Producer(Actor):
    role = 'producer'

    def step(self):
        queue = self.random.choice(self.run.queues)
        delay = self.random.choice([None, None, None, '0.2 s'])
        self.random.choices([self.enqueue, self.enqueue_batch, self.enqueue_burst, self.enqueue_long, self.enqueue_and_roll_back, self.enqueue_keyed],
                            [35, 11, 1, 6, 10, 37])[0](queue, delay)
        self.rest(self.run.pace)

    def group(self):
        return self.random.choice(GROUPS)

    def single(self, label, queue, delay, task='plain', priority=5, group=None):
        return self.row('SELECT jobq.enqueue(%s, %s, queue => %s, priority => %s, delay => %s, group_key => %s)', task,
                        json.dumps({'mark': f'{label}/0'}), queue, priority, delay, group)[0]

    def batch(self, label, number, queue, delay, group):
        return [row[0] for row in self.rows('SELECT jobq.enqueue_batch(%s, %s, queue => %s, delay => %s, group_key => %s)', 'batch',
                                            payloads(label, number), queue, delay, group)]

    def enqueue(self, queue, delay):
        task, priority, group = self.random.choice(['plain'] * 60 + ['poison']), self.random.randrange(10), self.group()
        self.act('enqueue', lambda label: [self.single(label, queue, delay, task, priority, group)], number=1,
                 queue=queue, wait=seconds(delay), priority=priority, group=group)

    def enqueue_batch(self, queue, delay, number=6):
        group = self.group()
        self.act('enqueue', lambda label: self.batch(label, number, queue, delay, group), number=number, queue=queue, wait=seconds(delay),
                 priority=5, group=group)

    def enqueue_burst(self, queue, _):
        self.enqueue_batch(queue, None, BURST)

    def enqueue_long(self, queue, delay):
        """Committed late, and after a savepoint was rolled back: younger jobs are claimed before."""
        pause, group = self.random.random(), self.group()

        def enqueue(label):
            with self.db.transaction():
                jobs = self.batch(label, 3, queue, delay, group)
                with self.rolled_back():
                    self.batch(f'{label}/rolled back', 2, queue, delay, group)
                time.sleep(pause)
            return jobs
        self.act('enqueue', enqueue, number=3, queue=queue, wait=seconds(delay), priority=5, group=group)

    def enqueue_and_roll_back(self, queue, delay):
        key, group = f'key {self.random.randrange(KEYS)}', self.group()

        def enqueue(label):
            with self.rolled_back():
                self.batch(label, 2, queue, delay, group)
                self.rows('SELECT jobq.enqueue(%s, %s, queue => %s, job_key => %s)', 'rolled back', json.dumps({'mark': f'{label}/2'}), queue, key)
        self.act('enqueue and roll back', enqueue)

    def enqueue_keyed(self, queue, delay):
        mode = self.random.choice(['keep', 'keep', 'replace', 'preserve_run_at', 'reject'])
        key = f'key {self.random.randrange(KEYS)}'
        pause = self.random.choice([0, 0, 0.02])
        if self.random.random() < 0.5:
            # all producers want this one at this time
            queue, key = self.run.queues[0], f'key {int(time.monotonic() * 5) % KEYS}'
        self.enqueue_under(key, mode, queue, delay, pause)

    def enqueue_under(self, key, mode, queue, delay, pause=0):
        group = self.group()

        def enqueue(label):
            with self.db.transaction():
                job, created = self.row('SELECT job_id, created FROM jobq.enqueue_unique(%s, %s, queue => %s, job_key => %s, job_key_mode => %s,'
                                        ' delay => %s, group_key => %s)', mode, json.dumps({'mark': f'{label}/0'}), queue, key, mode, delay, group)
                replaced = self.db.execute(LAST_ATTEMPT, (job,)).rowcount if mode in REPLACING and not created else 0
                time.sleep(pause)
            return [job, created, replaced]

        self.act('enqueue keyed', enqueue, may_raise=['23505'] if mode == 'reject' else [], mode=mode, queue=queue, key=key, group=group)
