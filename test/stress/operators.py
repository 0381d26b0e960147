"""Who looks after the queues: an operator who cancels and brings back, a sweeper, and an observer who looks for contradictions."""
import time

from actor import CLOCK, Actor
from known import FLEETING
from producer import GROUPS, LAST_ATTEMPT, Producer
from tables import contradictions


SEEN = 'seen while it ran'
KEYLESS = """SELECT count(*) FROM jobq.jobs AS j WHERE job_id = ANY (%s) AND job_key IS NOT NULL
    AND NOT EXISTS (SELECT FROM jobq.key AS k WHERE k.job_id = j.job_id)"""


class Operator(Producer):
    """Cancels, brings back, moves, pauses, alters. Whoever makes a job's counters anew writes down at which attempt, in the same transaction."""
    role = 'operator'

    def step(self):
        way = self.random.choices([self.cancel, self.cancel_key, self.retry, self.retry_dead, self.reschedule, self.pause, self.alter,
                                   self.set_group], [40, 10, 20, 10, 15, 10, 5, 10])[0]
        way(self.random.choice(self.run.queues))
        self.rest(0.05)

    def some_job(self, among):
        """One of the newest of these, or of all jobs: most of those are not in the state for what is done to it."""
        table = self.random.choice([among, among, 'jobq.job'])
        jobs = self.act('look for a job', lambda _: self.rows(f'SELECT job_id FROM {table} ORDER BY job_id DESC LIMIT 200'))
        return self.random.choice(jobs)[0] if jobs else 1

    def cancel(self, _):
        job = self.some_job('jobq.jobs')
        self.act('cancel', lambda label: self.row(f'SELECT jobq.cancel(%s, %s), {CLOCK}', job, label), job=job)

    def cancel_key(self, queue):
        keys = self.act('look for keys', lambda _: self.rows('SELECT job_key FROM jobq.key JOIN jobq.queue USING (queue_id) WHERE name = %s', queue))
        key = self.random.choice(keys)[0] if keys else 'nobody has it'
        self.act('cancel key', lambda label: self.row('SELECT jobq.cancel_key(%s, %s, %s)', queue, key, label), queue=queue, key=key)

    def retry(self, _):
        job = self.some_job("jobq.finished WHERE state <> 'completed'")

        def retry(_):
            with self.db.transaction():
                ended = self.rows("SELECT FROM jobq.finished WHERE job_id = %s AND state <> 'completed' FOR UPDATE", job)
                lives = self.row('SELECT jobq.retry(%s)', job)[0]
                written = self.db.execute(LAST_ATTEMPT, (job,)).rowcount if lives else 0
            return [lives, len(ended), written]
        self.act('retry', retry, job=job, may_raise=['23505'])

    def retry_dead(self, queue):
        """In one snapshot, so that whoever was dead in it and is not any more was brought back here. Those whose key another one has stay."""
        keys = self.act('look for keys', lambda _: self.rows("SELECT job_key FROM jobq.history JOIN jobq.job USING (job_id) WHERE history.queue = %s"
                                                             " AND state = 'dead' AND job_key IS NOT NULL ORDER BY job_id LIMIT 3", queue))
        if keys:
            self.enqueue_under(self.random.choice(keys)[0], 'keep', queue, '0.2 s')

        def retry(_):
            with self.db.transaction():
                self.db.execute('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
                dead = self.rows('SELECT job_id FROM jobq.dead_jobs WHERE queue = %s', queue)
                number = self.row('SELECT jobq.retry_dead(%s, 20)', queue)[0]
                written = self.db.execute('INSERT INTO chaos.reset SELECT job_id, attempt FROM jobq.jobs WHERE job_id = ANY (%s)',
                                          ([row[0] for row in dead],)).rowcount
                keyless = self.row(KEYLESS, [row[0] for row in dead])[0]
            return [number, written, keyless]
        self.act('retry dead', retry)

    def reschedule(self, _):
        job, priority = self.some_job("jobq.jobs WHERE state <> 'running'"), self.random.randrange(10)
        self.act('reschedule', lambda _: self.row("SELECT jobq.reschedule(%s, run_at => clock_timestamp() + interval '0.2 s', priority => %s)",
                                                  job, priority), job=job)

    def pause(self, queue):
        self.act('pause', lambda _: self.rows('SELECT jobq.pause_queue(%s)', queue) and None, queue=queue)
        time.sleep(0.05)
        self.act('resume', lambda _: self.rows('SELECT jobq.resume_queue(%s)', queue) and None, queue=queue)

    def alter(self, _):
        keep = self.random.choice(['0', '1 s'])
        self.act('alter', lambda _: self.rows('SELECT jobq.alter_queue(%s, keep_completed => %s)', FLEETING, keep) and None)

    def set_group(self, queue):
        group, weight = self.random.choice(GROUPS[1:]), self.random.choice([1, 1, 2, 10, 1000])
        self.act('set group', lambda _: self.rows('SELECT jobq.set_group(%s, %s, %s)', queue, group, weight) and None, queue=queue)


class Sweeper(Actor):
    role = 'sweeper'

    def step(self):
        if self.random.random() < 0.1:
            self.act('sweep and roll back', self.sweep_and_roll_back)
        number = self.random.choice([1000, 1000, 3])
        self.act('sweep', lambda _: self.row('SELECT * FROM jobq.sweep(%s)', number))
        self.rest(self.run.sweep_pause)

    def sweep_and_roll_back(self, _):
        with self.rolled_back():
            self.rows('SELECT * FROM jobq.sweep()')


class Observer(Actor):
    """Looks at all tables in one snapshot, again and again, for a tenth of its time."""
    role = 'observer'

    def step(self):
        began = time.monotonic()
        for what, row in self.act('observe', self.observe) or []:
            self.log.note('error', message=f'{SEEN}: {what}: {row}')
        self.until = time.monotonic() + max(0.2, 9 * (time.monotonic() - began))
        while time.monotonic() < self.until and not self.over():
            time.sleep(0.1)

    def observe(self, _):
        with self.db.transaction():
            self.db.execute('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY')
            return [[what, str(row)] for what, row in contradictions(self.db, effects=True)]
