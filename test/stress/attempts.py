"""Attempts are the claims that were committed; each has one end, which is recorded as it was told; and they are no more than the limits allow."""
from known import SLACK, Handed, Known, tokens_of


MAX_ATTEMPTS, MAX_CRASHES = 5, 3
RETRY_BASE, RETRY_CAP = 0.1, 0.3


def tries(kinds):
    return len(kinds) - kinds.count('snoozed')


def crashes(kinds):
    """Those in a row at the end."""
    return next((number for number, kind in enumerate(reversed(kinds)) if kind != 'expired'), len(kinds))


class Attempts(Known):
    def each_claim(self):
        """It hands out no more jobs than were asked for, of the queues that were asked for, in their order and that of priorities, and each
        job as it was enqueued."""
        moved = self.moved()
        for claim in self.story.done('claim'):
            handed = list(map(Handed._make, claim['answer']))
            if len(handed) > claim['most']:
                self.wrong('more jobs than were asked for', claim['label'], len(handed), claim['most'])
            if not {one.queue for one in handed} <= set(claim['queues']):
                self.wrong('a job of another queue than was asked for', claim['label'], handed)
            elif handed != sorted(handed, key=lambda one: (claim['queues'].index(one.queue), one.priority)):
                self.wrong('jobs out of order', claim['label'], handed)
            for one in handed:
                self.is_as_enqueued(one, moved)

    def is_as_enqueued(self, handed, moved):
        operation = self.enqueue_of(handed.mark)
        row = self.jobs.get(handed.job)
        if row and (handed.queue != row.queue or not row.key and handed.mark != row.mark):
            self.wrong('another job was handed out than was enqueued', handed, row)
        elif operation and operation['do'] == 'enqueue' and operation['priority'] != handed.priority and handed.job not in moved:
            self.wrong('a job of another priority than was asked for', handed, operation['priority'])

    def each_attempt(self):
        """Attempts are the committed claims, from 1 on without a gap, and each leads to the call that took it."""
        for job, attempt in self.attempts:
            if attempt > (self.jobs[job].attempt if job in self.jobs else self.gone.get(job, 0)):
                self.wrong('a committed claim is not counted', (job, attempt), self.jobs.get(job))
        for job, row in self.jobs.items():
            for attempt in self.failures[job]:
                if not 1 <= attempt <= row.attempt:
                    self.wrong('a failure of an attempt that never was', (job, attempt))
            for attempt in range(1, row.attempt + 1):
                self.was_taken(job, attempt, row)

    def was_taken(self, job, attempt, row):
        failure = self.failures[job].get(attempt)
        label = failure.worker if failure else row.worker if attempt == row.attempt and row.state == 'completed' else None
        known = self.attempts.get((job, attempt))
        if known:
            if label is not None and label != known.claim['label']:
                self.wrong('an attempt was recorded under another worker', (job, attempt), label, known.claim['label'])
            if label is not None and abs(known.at - (failure or row).claimed) > 1e-5:
                self.wrong('an attempt was recorded with another beginning', (job, attempt), known.at, (failure or row).claimed)
        elif label is None:
            self.wrong('an attempt that nobody claimed', (job, attempt), row)
        elif self.labels.get(label, {}).get('do') != 'claim' or self.labels[label]['outcome'] != 'unknown':
            self.wrong('an attempt that nobody claimed', (job, attempt), label)

    def each_end(self):
        """Each attempt has one end and its record: a failure, the completion, or a snooze; and what was acknowledged is what is recorded."""
        for job, row in self.jobs.items():
            for attempt in range(1, row.attempt + 1):
                token = job, attempt
                failure = self.failures[job].get(attempt)
                completed = row.state == 'completed' and attempt == row.attempt
                if failure and completed:
                    self.wrong('an attempt with two ends', token, failure)
                recorded = 'complete' if completed else {'error': 'fail'}.get(failure.kind, failure.kind) if failure else 'snooze'
                self.is_what_was_heard(token, recorded)
                if recorded == 'fail':
                    self.is_what_was_said(token, failure.error)

    def is_what_was_heard(self, token, recorded):
        known = self.attempts.get(token)
        heard = known.end[0] if known and known.end else None
        if heard:
            if heard != recorded:
                self.wrong(f'an attempt whose {heard} was acknowledged is recorded as {recorded}', token, known.end[1]['label'])
        elif recorded == 'snooze' and 'snooze' not in self.possible[token]:
            self.wrong('an attempt without an end', token)
        elif recorded in ('complete', 'fail') and recorded not in self.possible[token]:
            self.wrong(f'an attempt is recorded as {recorded} that nobody ended so', token)

    def is_what_was_said(self, token, error):
        operation = self.labels.get((error or '').partition(' ')[0])
        if not operation or operation['do'] != 'fail' or operation['outcome'] == 'raised' or token not in tokens_of(operation):
            self.wrong('a failure with the error of another', token, error)

    def counters(self):
        """Promise 2: starts since the enqueue or the last fresh start <= max_attempts + snoozes; deaths of workers in a row <= max_crashes. And
        who claims is told of them."""
        for job, row in self.jobs.items():
            kinds = []
            for attempt in range(1, row.attempt + 1):
                failure = self.failures[job].get(attempt)
                self.are_told(job, attempt, tries(kinds) + 1, crashes(kinds))
                kinds.append(failure.kind if failure else 'completed' if row.state == 'completed' and attempt == row.attempt else 'snoozed')
                if tries(kinds) > MAX_ATTEMPTS:
                    self.wrong('more tries than the limit', job, kinds)
                if crashes(kinds) > MAX_CRASHES:
                    self.wrong('more deaths of workers in a row than the limit', job, kinds)
                if attempt in self.resets[job]:
                    kinds = []
            if row.state == 'dead':
                self.died_of(job, row, kinds)
            if row.state in ('completed', 'dead') and row.tries != tries(kinds):
                self.wrong('the tries are miscounted', job, row.tries, kinds)

    def are_told(self, job, attempt, true_tries, true_crashes):
        known = self.attempts.get((job, attempt))
        if known and (known.handed.tries, known.handed.crashes) != (true_tries, true_crashes):
            self.wrong('the counters are miscounted', known.handed, true_tries, true_crashes)

    def died_of(self, job, row, kinds):
        """Promise 5: each death has its reason, and it is the right one."""
        known = self.attempts.get((job, row.attempt))
        true = {
            'attempts exhausted': tries(kinds) == MAX_ATTEMPTS,
            f'crashed {MAX_CRASHES} times': crashes(kinds) == MAX_CRASHES,
            'failed, not to be retried': kinds[-1:] == ['error'] and not (known and known.end and known.end[1].get('retry')),
        }
        if not true.get(row.reason):
            self.wrong('a death for no good reason', job, row.reason, kinds)

    def waits(self):
        """Nothing is claimed before its time: that of its enqueue, of a snooze, of a retry. Jobs that were moved have another."""
        if self.run['mode'] == 'clock':
            return
        moved = self.moved()
        for (job, attempt), known in self.attempts.items():
            if job in self.jobs and job not in moved and attempt - 1 not in self.resets[job]:
                early = self.not_before(job, attempt) - known.at
                if early > SLACK / 2:
                    self.wrong('a claim before its time', known.handed, early)

    def not_before(self, job, attempt):
        """As far as is known."""
        before, failure = self.attempts.get((job, attempt - 1)), self.failures[job].get(attempt - 1)
        end = before and before.end and before.end[1]
        if attempt == 1:
            enqueue = self.enqueue_of(self.jobs[job].mark)
            return enqueue['mono'] + self.run['offset'] + enqueue['wait'] if enqueue and enqueue['do'] == 'enqueue' else 0
        if failure and before and (end or failure.kind == 'expired'):
            wait = end and end.get('wait')
            return failure.failed + (min(RETRY_CAP, RETRY_BASE * 2 ** (before.handed.tries - 1)) if wait is None else wait)
        return end['mono'] + self.run['offset'] + end['wait'] if end and end['do'] == 'snooze' else 0
