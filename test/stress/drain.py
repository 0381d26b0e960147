"""After the crowd has gone: every job is brought to its end, so that none can hide in a line."""
import time

from producer import Producer
from worker import Worker, one_a_job


class Drain(Worker):
    role = 'drain'

    def drained(self, seconds):
        """Whether no live job is left, within so many seconds."""
        self.run.until.value = time.monotonic() + seconds
        if not self.db:
            self.connect()
        for queue in self.run.queues:
            self.act('resume', lambda _, q=queue: self.rows('SELECT jobq.resume_queue(%s)', q) and None, queue=queue)
        while not self.over():
            if not self.run.managed:
                self.act('sweep', lambda _: self.row('SELECT * FROM jobq.sweep()'))
            for queue in self.run.queues:
                self.held = []
                self.took('drain', lambda label, q=queue: self.claimed(label, q, 1000, '4 s'), [queue], 1000, '4 s')
                if self.held:
                    tokens = one_a_job(self.held)
                    self.act('complete batch', lambda label, t=tokens: self.completed_batch(t, label), tokens=tokens)
            if self.row('SELECT count(*) FROM jobq.jobs')[0] == 0:
                return True
            time.sleep(0.1)
        return False

    def sleep(self):
        """Until it hears of a job that comes to be ready."""
        queue = self.run.queues[0]
        self.act('enqueue', lambda label: [Producer.single(self, label, queue, '0.3 s')], number=1, queue=queue, wait=0.3, priority=5,
                 group=None)
        self.act('sleep', lambda _: self.row("CALL jobq.wait(%s, '10 s')", queue)[0])

    def die(self):
        """A poison job is only another job here."""
