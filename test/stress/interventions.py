"""What an operator was told that he did, is done: cancels, retries, pauses."""
import bisect
import collections

from known import FLEETING, SLACK, Handed, Known


def within(ordered, begin, end):
    """Those of the tuples whose first element lies between."""
    return ordered[bisect.bisect_right(ordered, (begin, float('inf'))):bisect.bisect_left(ordered, (end,))]


class Interventions(Known):
    def cancels(self):
        """What was cancelled is, unless somebody brought it back, and names the one call that did it, or the job in its place; and who lived
        all the time was not spared."""
        taken = collections.defaultdict(set)
        for job, row in self.jobs.items():
            reasons = [failure.error for failure in self.failures[job].values() if failure.kind == 'cancelled']
            for reason in reasons + [row.reason] * (row.state == 'cancelled'):
                taken[reason].add(job)
                if not self.has_cause(job, row, reason or ''):
                    self.wrong('a job is cancelled that nobody cancelled', job, row, reason)
        back = {operation['job'] for operation in self.story.unknown('retry') + self.succeeded('retry')}
        keys = {(self.jobs[job].queue, self.jobs[job].key) for job in back if job in self.jobs}
        for operation in self.story.done('cancel', 'cancel key'):
            jobs = taken[operation['label']]
            brought_back = operation.get('job') in back or (operation.get('queue'), operation.get('key')) in keys
            if len(jobs) > 1 or operation['answer'][0] and not jobs and not brought_back and operation.get('queue') != FLEETING:
                self.wrong('a cancelled job is not', operation['label'], jobs)
        self.are_not_spared()

    def has_cause(self, job, row, reason):
        operation = self.labels.get(reason)
        if operation and operation['do'] in ('cancel', 'cancel key') and operation['outcome'] != 'raised':
            fits = operation['job'] == job if 'job' in operation else (operation['queue'], operation['key']) == (row.queue, row.key)
            return fits and not (operation['outcome'] == 'done' and not operation['answer'][0])
        successor = int(reason.removeprefix('replaced by job ')) if reason.startswith('replaced by job ') else None
        there = self.jobs.get(successor)
        return successor in self.gone or bool(there and row.key and (there.queue, there.key) == (row.queue, row.key))

    def are_not_spared(self):
        if self.run['mode'] == 'clock':
            return
        enqueued = {job: operation['received'] for operation in self.story.done('enqueue') for job in operation['answer']}
        for operation in self.story.done('cancel'):
            row = self.jobs.get(operation['job'])
            lived = row and row.ended and not self.resets[operation['job']] and enqueued.get(operation['job'], float('inf')) < operation['mono']
            if lived and not operation['answer'][0] and row.ended > operation['received'] + self.run['offset'] + SLACK:
                self.wrong('a live job was not cancelled', operation['job'], operation['label'])

    def retries(self):
        """Whoever had ended and was not completed comes back, and lives."""
        for operation in self.story.done('retry'):
            lives, ended, written = operation['answer']
            if ended and not lives or lives != (written == 1):
                self.wrong('a job did not come back', operation['job'], operation['answer'])
        for operation in self.story.done('retry dead'):
            number, written, keyless = operation['answer']
            if number != written:
                self.wrong('a job did not come back', operation['label'], operation['answer'])
            if keyless:
                self.wrong('a job came back without its key', operation['label'], operation['answer'])

    def pauses(self):
        """Nothing is claimed from a queue between the answer to a pause and the next call to resume it."""
        claims = collections.defaultdict(list)
        for claim in self.story.done('claim'):
            for queue in {Handed._make(row).queue for row in claim['answer']}:
                claims[queue].append((claim['mono'], claim['received'], claim['label']))
        claims = {queue: sorted(taken) for queue, taken in claims.items()}
        resumes = collections.defaultdict(list)
        for resume in self.story.by['resume']:
            resumes[resume['queue']].append(resume['mono'])
        for pause in self.story.done('pause'):
            queue, begin = pause['queue'], pause['received']
            end = min((at for at in resumes[queue] if at > begin), default=0)
            for _, received, label in within(claims.get(queue, []), begin, end):
                if received < end:
                    self.wrong('a claim from a paused queue', label, pause['label'])
