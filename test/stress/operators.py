"""Who looks after the queues: an operator who cancels and brings back, a sweeper, and an observer who looks for contradictions."""
import time

from actor import CLOCK, Actor
from producer import KEYS, LAST_ATTEMPT
from tables import contradictions


SEEN = 'seen while it ran'


class Operator(Actor):
    """Cancels, brings back, moves, pauses; picks among the newest jobs. Whoever makes a job's counters anew writes down at which attempt,
    in the same transaction."""
    role = 'operator'

    def step(self):
        way = self.random.choices([self.cancel, self.cancel_key, self.retry, self.retry_dead, self.reschedule, self.pause], [40, 10, 20, 5, 15, 10])[0]
        way(self.random.choice(self.run.queues))
        self.rest(0.05)

    def some_job(self):
        last = self.act('look for the last job', lambda _: self.row('SELECT coalesce(max(job_id), 0) FROM jobq.job')[0])
        return max(1, (last or 1) - self.random.randrange(200))

    def cancel(self, _):
        job = self.some_job()
        self.act('cancel', lambda _: self.row(f'SELECT jobq.cancel(%s, %s), {CLOCK}', job, 'chaos'), job=job)

    def cancel_key(self, queue):
        key = f'key {self.random.randrange(KEYS)}'
        self.act('cancel key', lambda _: self.row('SELECT jobq.cancel_key(%s, %s)', queue, key), queue=queue, key=key)

    def retry(self, _):
        job = self.some_job()

        def retry(_):
            with self.db.transaction():
                lives = self.row('SELECT jobq.retry(%s)', job)[0]
                if lives:
                    self.db.execute(LAST_ATTEMPT, (job,))
            return lives
        self.act('retry', retry, job=job, may_raise=['23505'])

    def retry_dead(self, queue):
        """In one snapshot, so that whoever was dead in it and is not any more was brought back here."""
        def retry(_):
            with self.db.transaction():
                self.db.execute('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
                dead = self.rows('SELECT job_id FROM jobq.dead_jobs WHERE queue = %s', queue)
                number = self.row('SELECT jobq.retry_dead(%s, 5)', queue)[0]
                self.db.execute('INSERT INTO chaos.reset SELECT job_id, attempt FROM jobq.jobs WHERE job_id = ANY (%s)', ([row[0] for row in dead],))
            return number
        self.act('retry dead', retry)

    def reschedule(self, _):
        job, priority = self.some_job(), self.random.randrange(10)
        self.act('reschedule', lambda _: self.row("SELECT jobq.reschedule(%s, run_at => clock_timestamp() + interval '0.2 s', priority => %s)", job, priority)[0])

    def pause(self, queue):
        self.act('pause', lambda _: self.rows('SELECT jobq.pause_queue(%s)', queue) and None, queue=queue)
        time.sleep(0.05)
        self.act('resume', lambda _: self.rows('SELECT jobq.resume_queue(%s)', queue) and None, queue=queue)


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
