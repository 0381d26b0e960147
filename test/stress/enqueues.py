"""What was enqueued is there, once, as it was said, and nothing else is."""
import collections

from known import FLEETING, Known
from producer import REPLACING


class Enqueues(Known):
    def each_enqueue(self):
        """An acknowledged job is there, one of unknown outcome at most once, a batch whole or not at all, and no other."""
        marked = collections.defaultdict(list)
        for job, row in self.jobs.items():
            marked[row.mark].append(job)
        for operation in self.story.done('enqueue'):
            if len(operation['answer']) != operation['number']:
                self.wrong('half a batch is there', operation['label'], operation['answer'])
            for number, job in enumerate(operation['answer']):
                if marked[f'{operation["label"]}/{number}'] != [job] and job not in self.gone:
                    self.wrong('an acknowledged job is lost', job, operation['label'], marked[f'{operation["label"]}/{number}'])
        for operation in self.story.done('enqueue keyed'):
            if operation['answer'][0] not in self.jobs.keys() | self.gone.keys():
                self.wrong('an acknowledged job is lost', operation['answer'], operation['label'])
        for operation in self.story.unknown('enqueue'):
            there = sum(len(marked[f'{operation["label"]}/{number}']) for number in range(operation['number']))
            if there not in (0, operation['number']) and operation['queue'] != FLEETING:
                self.wrong('half a batch is there', operation['label'], there)
        for mark, jobs in marked.items():
            if len(jobs) > 1:
                self.wrong('an enqueue exists twice', mark, jobs)
            for job in jobs:
                self.is_known(job, mark)

    def is_known(self, job, mark):
        operation = self.enqueue_of(mark)
        if not operation or operation['do'] not in ('enqueue', 'enqueue keyed') or operation['outcome'] == 'raised':
            self.wrong('a job that nobody enqueued', job, mark)
        elif operation['outcome'] == 'done' and job not in operation['answer']:
            self.wrong('a job that nobody enqueued', job, mark, operation['answer'])

    def each_keyed(self):
        """A key leads to a job of that key, which is the new one, or kept as it is, or rewritten with fresh counters."""
        rewritten = collections.defaultdict(list)
        for operation in self.story.done('enqueue keyed'):
            job, created, written = operation['answer']
            row = self.jobs.get(job)
            replaces = operation['mode'] in REPLACING
            if row and (row.queue, row.key) != (operation['queue'], operation['key']):
                self.wrong('a key led to the job of another', operation['label'], job, row)
            if not created and operation['mode'] == 'reject' or not created and replaces and not written:
                self.wrong('a key neither refused nor replaced', operation['label'], operation['answer'])
            if row and not created and not replaces and row.mark == f'{operation["label"]}/0':
                self.wrong('a job was to be kept and is rewritten', job, operation['label'])
            if replaces and not created:
                rewritten[job].append(operation)
        for job, replaces in rewritten.items():
            last = job in self.jobs and self.enqueue_of(self.jobs[job].mark)
            if last and last['outcome'] == 'done' and any(operation['mono'] > last['received'] for operation in replaces):
                self.wrong('a job was to be rewritten and is as it was', job, last['label'])

    def keys(self):
        """No two jobs hold a key for certain at one time: from when it was acknowledged that one has it until it ended, or somebody may have
        replaced it. Jobs that were brought back are left out: they lost it in between."""
        if self.run['mode'] == 'clock':
            return
        calls = collections.defaultdict(list)
        for operation in self.story.by['enqueue keyed']:
            calls[operation['queue'], operation['key']].append(operation)
        for key, operations in calls.items():
            held = sorted(self.certain_holds(operations))
            for (_, until, holder), (begin, _, job) in zip(held, held[1:]):
                if begin < until:
                    self.wrong('a key was given to two', key, holder, job, until - begin)

    def certain_holds(self, operations):
        takes = [(operation['mono'], operation['received'] or float('inf')) for operation in operations if operation['mode'] in REPLACING]
        for operation in operations:
            job = operation['outcome'] == 'done' and operation['answer'][1] and operation['answer'][0]
            row = self.jobs.get(job)
            if row and row.ended and not self.resets[job]:
                begin = operation['received']
                until = min([row.ended - self.run['offset']] + [mono for mono, received in takes if received > begin])
                if begin < until:
                    yield begin, until, job
