"""No two leases of a job are valid at once, none ends before its time, and a token is good for nothing after it."""
import collections

from known import SLACK, Known


class Leases(Known):
    def leases(self):
        """No two of a job are valid at once, and none expires before its time."""
        order = collections.defaultdict(list)
        for job, attempt in sorted(self.attempts):
            if job in self.jobs:
                order[job].append(attempt)
        for job, attempts in order.items():
            for attempt in attempts:
                failure = self.failures[job].get(attempt)
                if failure and failure.kind == 'expired':
                    self.expired_in_time((job, attempt), failure, self.attempts.get((job, attempt + 1)))
            for earlier, later in zip(attempts, attempts[1:]):
                self.one_after_the_other(job, earlier, later)

    def expired_in_time(self, token, failure, successor):
        known = self.attempts[token]
        if known.doubtful:
            return
        if self.run['mode'] != 'clock':
            if failure.failed < known.until:
                self.wrong('a lease expired before its time', token, known.until - failure.failed)
        elif successor:
            least = min(known.length, max(self.run['grace'], known.length / 3))
            gap = successor.claim['received'] - known.renewed['mono']
            if gap < least:
                self.wrong('a lease expired before its time, however the clock leapt', token, gap, least)

    def one_after_the_other(self, job, earlier, later):
        if self.run['mode'] == 'clock':
            return
        before, after = self.attempts[job, earlier], self.attempts[job, later]
        failure = self.failures[job].get(earlier)
        end = before.until
        if before.end:
            end = min(end, before.end[2])
        if failure:
            end = min(end, failure.failed)
        if after.at < before.at:
            self.wrong('attempts go back in time', (job, earlier, later))
        if after.at < end and not before.doubtful and not self.possible[job, earlier]:
            self.wrong('two leases at once', (job, earlier, later), end - after.at)

    def late_workers(self):
        """A token is good for nothing after its end or a later claim; and nobody is refused who holds a lease."""
        successors = {(job, attempt - 1): known for (job, attempt), known in self.attempts.items()}
        for token, known in self.attempts.items():
            for operation in {id(o): o for o in (known.renewed, known.end and known.end[1]) if o and o is not known.claim}.values():
                successor = successors.get(token)
                if successor and successor.claim['received'] < operation['mono']:
                    self.wrong('a stale token was accepted', token, operation['label'])
            if known.end and known.renewed['mono'] > known.end[1]['received']:
                self.wrong('a lease was renewed after its end', token)
            failure = self.failures[token[0]].get(token[1])
            taken = failure.failed - self.run['offset'] if failure and failure.kind in ('expired', 'cancelled') else float('inf')
            if known.renewed is not known.claim and known.renewed['mono'] > taken + SLACK and self.run['mode'] != 'clock':
                self.wrong('a lease was renewed after its end', token, known.renewed['mono'] - taken)
        for token, at, operation in self.refused:
            known = self.attempts.get(token)
            failure = self.failures[token[0]].get(token[1])
            if known and failure and failure.failed > at and not self.possible[token] and self.run['mode'] in ('calm', 'crash'):
                self.wrong('who held a lease was refused', token, operation['label'])

    def graces(self):
        """A lease that was claimed before the server began to accept writes is not expired within the grace."""
        if self.run['mode'] == 'clock':
            return
        begins = [(event['at'], event['gone']) for event in self.story.by['server began']]
        for job, failures in self.failures.items():
            for attempt, failure in failures.items():
                # between `at` and `gone` it may still have been the old one's work
                last = max((at for at, gone in begins if failure.claimed < at and gone < failure.failed), default=None)
                if failure.kind == 'expired' and last and failure.failed < last + self.run['grace']:
                    self.wrong('expired within the grace', (job, attempt), failure.failed - last)
