"""Compares what the processes of a run wrote down with the database, and names each contradiction.

What was acknowledged must be so; what was refused or rolled back must not; what is in the tables must be certain or possible. Times are the
server's, but where its clock was moved.
"""
import bisect
import collections
import re

import tables
from known import Known

EXPECTED_KINDS = [
    'claim', 'claim and roll back', 'complete', 'complete batch', 'complete and roll back', 'fail', 'snooze', 'renew', 'renew batch', 'wait',
    'enqueue', 'enqueue keyed', 'enqueue and roll back', 'cancel', 'cancel key', 'retry', 'reschedule', 'pause', 'resume', 'observe']
# Seconds after which everything has been tried.
ENOUGH = 20
MAX_ATTEMPTS, MAX_CRASHES = 5, 3


def tries(kinds):
    return len(kinds) - kinds.count('snoozed')


def within(ordered, begin, end):
    """Those of the tuples whose first element lies between."""
    return ordered[bisect.bisect_right(ordered, (begin, float('inf'))):bisect.bisect_left(ordered, (end,))]


class Audit(Known):
    def __init__(self, db, story, server_log=''):
        super().__init__(db, story)
        self.server_log = server_log

    def contradictions(self):
        for check in (self.the_run_itself, self.the_tables, self.each_enqueue, self.keys, self.each_attempt, self.each_end, self.limits,
                      self.cancels, self.pauses, self.leases, self.late_workers, self.graces, self.sweeps, self.what_is_left, self.memory,
                      self.the_server_log):
            check()
        return self.found

    def the_run_itself(self):
        """It came to its end, all of its actors acted, and no error came that a caller need not expect."""
        if len(self.story.by['ended']) != 1:
            self.wrong('the run did not come to its end')
        if self.run['seconds'] >= ENOUGH:
            self.everything_was_tried()
        for event in self.story.by['error']:
            self.wrong('unexpected error', event['actor'], event.get('sqlstate'), event['message'], event.get('where', ''))

    def everything_was_tried(self):
        for kind in EXPECTED_KINDS + ([] if self.run['managed'] else ['sweep']):
            if not self.story.done(kind):
                self.wrong('nobody ever did', kind)
        if not self.refused:
            self.wrong('nobody was ever refused')
        if not any(failure.kind == 'expired' for job in self.failures.values() for failure in job.values()):
            self.wrong('no lease ever expired')

    def the_tables(self):
        for what, row in tables.contradictions(self.db, effects=True):
            self.wrong(what, row)
        self.none_of({
            'live jobs after the drain': 'SELECT job_id, queue, state FROM jobq.jobs',
            'an effect of nobody': 'SELECT job_id, attempt, label FROM chaos.effect WHERE job_id NOT IN (SELECT job_id FROM jobq.job)',
        })

        if self.run['mode'] != 'clock':
            self.none_of({
                'an end before its beginning':
                    """SELECT job_id, claimed_at, ended_at FROM jobq.finished WHERE ended_at < claimed_at
                    UNION ALL SELECT job_id, claimed_at, failed_at FROM jobq.failure WHERE failed_at < claimed_at""",
            })

    def none_of(self, statements):
        for what, statement in statements.items():
            for row in self.rows(statement)[:3]:
                self.wrong(what, row)

    def each_enqueue(self):
        """An acknowledged job is there, one of unknown outcome at most once, a batch whole or not at all, and no other."""
        marked = collections.defaultdict(list)
        for job, row in self.jobs.items():
            marked[row.mark].append(job)
        for operation in self.story.done('enqueue'):
            for number, job in enumerate(operation['answer']):
                if marked[f'{operation["label"]}/{number}'] != [job]:
                    self.wrong('an acknowledged job is lost', job, operation['label'], marked[f'{operation["label"]}/{number}'])
        for operation in self.story.done('enqueue keyed'):
            if operation['answer'][0] not in self.jobs:
                self.wrong('an acknowledged job is lost', operation['answer'], operation['label'])
        for operation in self.story.unknown('enqueue'):
            there = sum(len(marked[f'{operation["label"]}/{number}']) for number in range(operation['number']))
            if there not in (0, operation['number']):
                self.wrong('half a batch is there', operation['label'], there)
        for mark, jobs in marked.items():
            if len(jobs) > 1:
                self.wrong('an enqueue exists twice', mark, jobs)
            for job in jobs:
                self.is_known(job, mark)

    def is_known(self, job, mark):
        label, _, _ = (mark or '').rpartition('/')
        operation = self.labels.get(label)
        if not operation or operation['do'] not in ('enqueue', 'enqueue keyed') or operation['outcome'] == 'raised':
            self.wrong('a job that nobody enqueued', job, mark)
        elif operation['outcome'] == 'done' and job not in operation['answer']:
            self.wrong('a job that nobody enqueued', job, mark, operation['answer'])

    def keys(self):
        """No job gets a key while another one holds it. Replacing takes the key from a running job, and a retry gives it back later: those
        jobs are left out, also where nobody heard whether it was replaced."""
        if self.run['mode'] == 'clock':
            return
        made = collections.defaultdict(list)
        for operation in self.story.by['enqueue keyed']:
            replaces = operation['mode'] not in ('keep', 'reject')
            key = operation['queue'], operation['key']
            if operation['outcome'] == 'unknown' and replaces:
                made[key].append((operation['mono'], None, replaces))
            elif operation['outcome'] == 'done' and operation['answer'][1]:
                made[key].append((operation['received'], operation['answer'][0], replaces))
        for key, jobs in made.items():
            holder = None
            for at, job, replaces in sorted(jobs, key=lambda one: one[0]):
                row = self.jobs.get(holder)
                beyond = row.ended - at - self.run['offset'] if row and row.ended and not self.resets[holder] else 0
                if beyond > 0 and not replaces:
                    self.wrong('a key was given to two', key, holder, job, beyond)
                holder = job

    def each_attempt(self):
        """Attempts are the committed claims, from 1 on without a gap, and each leads to the call that took it."""
        for job, attempt in self.attempts:
            if job not in self.jobs or attempt > self.jobs[job].attempt:
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

    def limits(self):
        """Promise 2: starts since the enqueue or the last fresh start <= max_attempts + snoozes; deaths of workers in a row <= max_crashes."""
        for job, row in self.jobs.items():
            kinds = []
            for attempt in range(1, row.attempt + 1):
                failure = self.failures[job].get(attempt)
                kinds.append(failure.kind if failure else 'completed' if row.state == 'completed' and attempt == row.attempt else 'snoozed')
                if tries(kinds) > MAX_ATTEMPTS:
                    self.wrong('more tries than the limit', job, kinds)
                if kinds[-MAX_CRASHES - 1:] == ['expired'] * (MAX_CRASHES + 1):
                    self.wrong('more deaths of workers in a row than the limit', job, kinds)
                if attempt in self.resets[job] and attempt < row.attempt:
                    kinds = []
            if row.state == 'dead':
                self.died_of(job, row, kinds)

    def died_of(self, job, row, kinds):
        """Promise 5: each death has its reason, and it is the right one."""
        known = self.attempts.get((job, row.attempt))
        true = {
            'attempts exhausted': tries(kinds) == MAX_ATTEMPTS,
            f'crashed {MAX_CRASHES} times': kinds[-MAX_CRASHES:] == ['expired'] * MAX_CRASHES,
            'failed, not to be retried': kinds[-1:] == ['error'] and not (known and known.end and known.end[1]['retry']),
        }
        if not true.get(row.reason):
            self.wrong('a death for no good reason', job, row.reason, kinds)

    def cancels(self):
        """What was cancelled is, unless somebody brought it back; and nothing is that nobody cancelled."""
        cancelled = {operation['job']: operation for operation in self.story.done('cancel') if operation['answer'][0]}
        for job, operation in cancelled.items():
            if job in self.jobs and self.jobs[job].state != 'cancelled' and not self.resets[job]:
                self.wrong('a cancelled job is not', job, self.jobs[job], operation['label'])
        possible = cancelled.keys() | {operation['job'] for operation in self.story.unknown('cancel')}
        keys = {(operation['queue'], operation['key']) for operation in self.story.done('cancel key') + self.story.unknown('cancel key')}
        for job, row in self.jobs.items():
            cause = job in possible or (row.queue, row.key) in keys or (row.reason or '').startswith('replaced by job ')
            if row.state == 'cancelled' and not cause:
                self.wrong('a job is cancelled that nobody cancelled', job, row)

    def pauses(self):
        """Nothing is claimed from a queue between the answer to a pause and the next call to resume it."""
        claims = collections.defaultdict(list)
        for claim in self.story.done('claim'):
            for queue in {self.jobs[row[0]].queue for row in claim['answer'] if row[0] in self.jobs}:
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

    def leases(self):
        """No two of a job are valid at once, and none expires before its time."""
        order = collections.defaultdict(list)
        for job, attempt in sorted(self.attempts):
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

    def sweeps(self):
        """Where none but the crowd swept, and all heard of it: the counts are the failures. A replaced job's is cancelled, which no count shows."""
        counted = sum(operation['answer'][1] + operation['answer'][2] for operation in self.story.done('sweep'))
        expired = collections.Counter(self.jobs[job].key is not None for job, failures in self.failures.items() if job in self.jobs
                                      for failure in failures.values() if failure.kind == 'expired')
        least = expired[False] if self.run['mode'] == 'calm' and not self.run['managed'] else 0
        if not least <= counted <= expired[False] + expired[True]:
            self.wrong('the sweeps counted other than the failures of kind expired', counted, expired)

    def what_is_left(self):
        """Nothing holds a lock, a snapshot or a transaction when everybody has gone."""
        self.none_of({
            'a prepared transaction': 'SELECT gid FROM pg_prepared_xacts',
            'a client that is still there':
                """SELECT application_name, state, query FROM pg_stat_activity
                WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()""",
            'a lock of nobody':
                """SELECT locktype, mode FROM pg_locks AS l
                WHERE pid IS NULL OR NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = l.pid)""",
            'an old transaction':
                """SELECT backend_type, xact_start FROM pg_stat_activity
                WHERE backend_type ~ '^jobq' AND xact_start < clock_timestamp() - interval '5 s'""",
        })

    def memory(self):
        """Of each process of jobq, from its first third to its last."""
        sizes = collections.defaultdict(list)
        for event in self.story.by['memory']:
            sizes[event['what'], event['pid']].append(event['kilobytes'])
        for process, kilobytes in sizes.items():
            third = len(kilobytes) // 3
            if third >= 10 and min(kilobytes[-third:]) > max(kilobytes[:third]) + 2048:
                self.wrong('a process grows', process, max(kilobytes[:third]), min(kilobytes[-third:]))

    def the_server_log(self):
        """No deadlock, no internal error, no crash but the nemesis' own; and jobq's processes say little:
        a line for a death, some for a strike."""
        for pattern in (r'deadlock detected', r'sweep could not', r'PANIC:', r'TRAP:', r'was terminated by signal (?!9\b)\d+',
                        r' XX\d\d\d .*(?:ERROR|FATAL):'):
            line = re.search(f'^.*{pattern}.*$', self.server_log, re.MULTILINE)
            if line:
                self.wrong('the server log has', line[0])
        lines = re.findall(r'^\S+ \S+ \S+ \[\d+\] jobq .*$', self.server_log, re.MULTILINE)
        deaths = sum(' is dead: ' in line for line in lines)
        failures = sum(map(len, self.failures.values()))
        if deaths > failures or len(lines) - deaths > 20 + 20 * len(self.story.by['strike']):
            self.wrong('the processes of jobq fill the log', len(lines), deaths, failures)
