"""Compares what the processes of a run wrote down with the database, and names each contradiction.

What was acknowledged must be so; what was refused or rolled back must not; what is in the tables must be certain or possible. Times are the
server's, but where its clock was moved.
"""
import bisect
import collections
import re

import tables
from known import FLEETING, SLACK, Handed, Known, tokens_of
from producer import REPLACING

EXPECTED_KINDS = [
    'claim', 'claim and roll back', 'complete', 'complete batch', 'complete and roll back', 'fail', 'snooze', 'renew', 'renew batch', 'wait',
    'enqueue', 'enqueue keyed', 'enqueue and roll back', 'cancel', 'cancel key', 'retry', 'reschedule', 'pause', 'resume', 'alter', 'observe']
EXPECTED_TRUE = ['cancel', 'retry', 'reschedule']
# Seconds after which everything has been tried.
ENOUGH = 20
MAX_ATTEMPTS, MAX_CRASHES = 5, 3
RETRY_BASE, RETRY_CAP = 0.1, 0.3


def tries(kinds):
    return len(kinds) - kinds.count('snoozed')


def crashes(kinds):
    """Those in a row at the end."""
    return next((number for number, kind in enumerate(reversed(kinds)) if kind != 'expired'), len(kinds))


def within(ordered, begin, end):
    """Those of the tuples whose first element lies between."""
    return ordered[bisect.bisect_right(ordered, (begin, float('inf'))):bisect.bisect_left(ordered, (end,))]


class Audit(Known):
    def __init__(self, db, story, server_log=''):
        super().__init__(db, story)
        self.server_log = server_log

    def contradictions(self):
        for check in (self.the_run_itself, self.the_tables, self.each_enqueue, self.each_keyed, self.keys, self.each_claim, self.each_attempt,
                      self.each_end, self.counters, self.waits, self.cancels, self.retries, self.pauses, self.leases, self.late_workers,
                      self.graces, self.sweeps, self.what_is_left, self.memory, self.the_server_log):
            check()
        return self.found

    def the_run_itself(self):
        """It came to its end, all of its actors acted, and no error came that a caller need not expect."""
        if len(self.story.by['ended']) != 1:
            self.wrong('the run did not come to its end')
        if self.run['seconds'] >= ENOUGH:
            self.everything_was_tried()
        for operation in self.story.done('sleep'):
            if not operation['answer']:
                self.wrong('a sleeper was not woken', operation['label'])
        for event in self.story.by['error']:
            self.wrong('unexpected error', event['actor'], event.get('sqlstate'), event['message'], event.get('where', ''))

    def everything_was_tried(self):
        for kind in EXPECTED_KINDS + ([] if self.run['managed'] else ['sweep']):
            if not self.story.done(kind):
                self.wrong('nobody ever did', kind)
        for kind in EXPECTED_TRUE:
            if not self.succeeded(kind):
                self.wrong('nobody ever succeeded to', kind)
        if not self.refused:
            self.wrong('nobody was ever refused')
        if not any(failure.kind == 'expired' for job in self.failures.values() for failure in job.values()):
            self.wrong('no lease ever expired')

    def succeeded(self, do):
        return [operation for operation in self.story.done(do) if operation['answer'][0]]

    def the_tables(self):
        for what, row in tables.contradictions(self.db, effects=True):
            self.wrong(what, row)
        self.none_of({
            'live jobs after the drain': 'SELECT job_id, queue, state FROM jobq.jobs',
        })
        for job, attempt in self.effects:
            if job not in self.jobs and job not in self.gone:
                self.wrong('an effect of nobody', (job, attempt))

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
        label, _, _ = (mark or '').rpartition('/')
        operation = self.labels.get(label)
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
            last = job in self.jobs and self.labels.get(self.jobs[job].mark.rpartition('/')[0])
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

    def each_claim(self):
        """It hands out no more jobs than were asked for, of the queues that were asked for, in their order and that of priorities, and each
        job as it was enqueued."""
        moved = {operation['job'] for operation in self.story.by['reschedule'] if operation['outcome'] != 'raised'}
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
        operation = self.labels.get((handed.mark or '').rpartition('/')[0])
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
        moved = {operation['job'] for operation in self.story.by['reschedule'] if operation['outcome'] != 'raised'}
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
            enqueue = self.labels.get((self.jobs[job].mark or '').rpartition('/')[0])
            return enqueue['mono'] + self.run['offset'] + enqueue['wait'] if enqueue and enqueue['do'] == 'enqueue' else 0
        if failure and before and (end or failure.kind == 'expired'):
            wait = end and end.get('wait')
            return failure.failed + (min(RETRY_CAP, RETRY_BASE * 2 ** (before.handed.tries - 1)) if wait is None else wait)
        return end['mono'] + self.run['offset'] + end['wait'] if end and end['do'] == 'snooze' else 0

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

    def sweeps(self):
        """Where none but the crowd swept, and all heard of it: the counts are the failures. A replaced job's is cancelled, which no count shows."""
        counted = sum(operation['answer'][1] + operation['answer'][2] for operation in self.story.done('sweep'))
        expired = collections.Counter(self.jobs[job].key is not None for job, failures in self.failures.items() if job in self.jobs
                                      for failure in failures.values() if failure.kind == 'expired')
        least = expired[False] if self.run['mode'] == 'calm' and not self.run['managed'] else 0
        # failures go with their jobs
        if not least <= counted <= expired[False] + expired[True] + sum(self.gone.values()):
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
