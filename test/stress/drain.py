"""After the crowd has gone: every job is brought to its end, so that none can hide in a line."""
import time

from worker import CLAIMED, Worker, one_a_job


class Drain(Worker):
    role = 'drain'

    def drained(self, seconds):
        """Whether no live job is left, within so many seconds."""
        self.run.until.value = time.monotonic() + seconds
        self.connect()
        try:
            return self.drain()
        finally:
            self.db.close()

    def drain(self):
        for queue in self.run.queues:
            self.act('resume', lambda _, q=queue: self.rows('SELECT jobq.resume_queue(%s)', q) and None, queue=queue)
        while not self.over():
            if not self.run.managed:
                self.act('sweep', lambda _: self.row('SELECT * FROM jobq.sweep()'))
            for queue in self.run.queues:
                self.held = []
                self.took('drain', lambda label, q=queue: self.rows(CLAIMED + 'jobq.claim(%s, 1000, %s, %s)', '4 s', q, label, '4 s'), '4 s')
                if self.held:
                    tokens = one_a_job(self.held)
                    self.act('complete batch', lambda label, t=tokens: self.completed_batch(t, label), tokens=tokens)
            if self.row('SELECT count(*) FROM jobq.jobs')[0] == 0:
                return True
            time.sleep(0.1)
        return False

    def die(self):
        """A poison job is only another job here."""
