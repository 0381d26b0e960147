"""A job has the group that it was enqueued with, and in a group the order of one priority is first in, first out.

Whoever was ready first for certain is claimed first for certain: before a claim hands out a job, it meets all jobs of the same group and
priority that were ready when that one came. There are two series of such places: by time, those of a group, and by number, those of a batch.

What may come to stand before an older job all the same:
- it was moved, cancelled or brought back before its first claim, or may have been, or waited for a time of its own. It is left out.
- somebody held it while others passed, and let go of it: a claim that was rolled back, to a savepoint perhaps, or was refused, or of which
  nobody heard. The last may go on until the server has no such client any more, or begins anew.
Nothing else: neither a restart, nor a promotion, nor a weight.
"""
import bisect
import collections
import itertools

from known import Handed, Known


class Series:
    """Jobs that were ready at some place for certain, and when their first claims were sent."""

    def __init__(self, jobs):
        self.jobs = sorted(jobs)
        self.place = {job: place for place, _, job in self.jobs}
        self.last_sent = list(itertools.accumulate((sent for _, sent, _ in self.jobs), max))

    def before(self, place, received):
        """Those before that place that no claim had been sent for when that was received."""
        end = bisect.bisect_left(self.jobs, (place,))
        late = end and self.last_sent[end - 1] > received
        return [job for _, sent, job in self.jobs[:end] if sent > received] if late else []


class Groups(Known):
    def group_keys(self):
        for known in self.attempts.values():
            self.is_of_its_group(known.handed)
        for row in self.jobs.values():
            self.is_of_its_group(row)

    def is_of_its_group(self, job):
        enqueue = self.enqueue_of(job.mark)
        if enqueue and enqueue.get('group') != job.group:
            self.wrong('a job of another group than it was enqueued with', job, enqueue['label'], enqueue.get('group'))

    def first_in_first_out(self):
        series = {name: Series(jobs) for name, jobs in self.ready_for_certain().items()}
        self.holds = self.passing_holds()
        for claim in self.story.done('claim'):
            youngest = collections.defaultdict(lambda: float('-inf'))
            for handed in map(Handed._make, claim['answer']):
                for name, place, since in self.places(handed):
                    if name in series:
                        self.is_next(claim, handed, series[name], youngest[name])
                        self.has_not_overtaken(claim, handed, series[name].before(place, claim['received']), since)
                    youngest[name] = max(youngest[name], place)

    def ready_for_certain(self):
        """Until their first claim."""
        touched = collections.defaultdict(lambda: float('inf'))
        for operation in itertools.chain(*(self.story.by[do] for do in ('cancel', 'reschedule', 'retry'))):
            touched[operation['job']] = min(touched[operation['job']], operation['mono'])
        series = collections.defaultdict(list)
        for operation in self.story.done('enqueue'):
            group = operation['queue'], operation['priority'], operation['group']
            for number, job in enumerate(operation['answer'] if operation['wait'] == 0 else []):
                sent = self.first_claim_sent(job)
                if sent is not None and sent < touched[job]:
                    series[group].append((operation['received'], sent, job))
                    series[*group, operation['label']].append((number, sent, job))
        return series

    def first_claim_sent(self, job):
        if (job, 1) in self.attempts:
            return self.attempts[job, 1].claim['mono']
        row = self.jobs.get(job)
        recorded = self.failures[job].get(1) or (row if row and row.attempt == 1 else None)
        return self.labels.get(recorded and recorded.worker, {}).get('mono')

    def places(self, handed):
        """(series, a place at which or behind which it stands for certain, since when it does at the earliest)"""
        enqueue = self.enqueue_of(handed.mark)
        if not enqueue:
            return
        before = self.attempts.get((handed.job, handed.attempt - 1))
        since = max(enqueue['mono'], before.end[1]['mono'] if before and before.end else 0)
        group = handed.queue, handed.priority, handed.group
        yield group, since, since
        if enqueue['do'] == 'enqueue':
            yield (*group, enqueue['label']), int(handed.mark.rpartition('/')[2]), since

    def is_next(self, claim, handed, series, youngest):
        if handed.attempt == 1 and series.place.get(handed.job, youngest) < youngest:
            self.wrong('jobs of a group out of order', claim['label'], handed)

    def has_not_overtaken(self, claim, handed, older, since):
        if older and not self.was_held(claim, handed.queue, max(since, claim['mono'])):
            self.wrong('a job overtook an older one of its group', claim['label'], handed, older)

    def passing_holds(self):
        """For each queue: what may have held ready jobs and let go of them, and until when."""
        holds = collections.defaultdict(list)
        for operation in self.story.by['claim'] + self.story.by['claim and roll back']:
            if operation['do'] != 'claim' or operation['outcome'] != 'done' or operation['way'] == 'after a savepoint':
                end = self.gone_at(operation) if operation['outcome'] == 'unknown' else operation['received']
                for queue in operation['queues']:
                    holds[queue].append((operation, end))
        return holds

    def gone_at(self, operation):
        """When the server is known to do it no more."""
        begins = [event['mono'] for event in self.story.by['server began'] if event['mono'] > operation['mono']]
        looks = [event['mono'] for event in self.story.by['clients']
                 if event['asked'] > operation['mono'] and operation['backend'] not in event['pids']]
        return min(begins + looks, default=float('inf'))

    def was_held(self, claim, queue, begin):
        """By another one, at some time between then and the claim's answer. What a claim gave back itself it meets again."""
        return any(end > begin and holder['mono'] < claim['received'] and holder is not claim for holder, end in self.holds[queue])
