"""What is known after a run: what the tables say, and what its processes were told.

A thing is certain if its answer came back, possible if nobody heard it.
"""
import collections

# wal_writer_delay is 1 s; an asynchronous commit is on disk after three times that at the latest
ASYNCHRONOUS = 3.5

FLEETING = 'chaos c'  # keeps no completed job, or not for long

# One that says when something was, by our clock, which the server's need not follow to the last.
SLACK = 0.1

Job = collections.namedtuple('Job', 'attempt state mark queue key reason worker ended claimed tries group')
JOBS = """
    SELECT j.job_id, coalesce(d.attempt, r.attempt, l.attempt, f.attempt, 0), f.state, j.payload ->> 'mark', q.name, j.job_key,
        f.reason, f.worker, extract(epoch FROM f.ended_at)::float8, extract(epoch FROM f.claimed_at)::float8, f.tries, j.group_key
    FROM jobq.job AS j
    LEFT JOIN jobq.queue AS q USING (queue_id)
    LEFT JOIN jobq.delayed AS d USING (job_id)
    LEFT JOIN jobq.ready AS r USING (job_id)
    LEFT JOIN jobq.lease AS l USING (job_id)
    LEFT JOIN jobq.finished AS f USING (job_id)"""

Failure = collections.namedtuple('Failure', 'kind worker claimed failed error')
FAILURES = """
    SELECT job_id, attempt, kind, worker, extract(epoch FROM claimed_at)::float8, extract(epoch FROM failed_at)::float8, left(error, 100)
    FROM jobq.failure"""

# A job as a claim hands it out.
Handed = collections.namedtuple('Handed', 'job attempt task at until queue priority tries crashes mark group')


class Attempt:
    """One token that a worker was given: what it knows of its lease, and what it heard of its end."""

    def __init__(self, operation, handed):
        self.claim = operation
        self.handed = handed
        self.at = handed.at
        self.until = handed.until
        self.length = operation['length']
        self.renewed = operation
        self.doubtful = False  # a renewal that nobody heard of may have changed the lease
        self.end = None        # (complete, fail or snooze; the operation; when)


def tokens_of(operation):
    if 'tokens' in operation:
        return [tuple(token) for token in operation['tokens']]
    return [(operation['job'], operation['attempt'])]


class Known:
    def __init__(self, db, story):
        self.db = db
        self.story = story
        self.run = story.by['started'][0]
        self.found = []  # contradictions
        self.labels = {operation['label']: operation for operation in story.operations}
        self.attempts = {}                              # token: Attempt
        self.refused = []                               # (token, when, operation)
        self.possible = collections.defaultdict(set)    # token: how it may have ended
        self.doubt_what_was_not_yet_on_disk()
        self.read_tables()
        self.read_claims()
        self.gone = {job: attempt for job, attempt in self.effects if job not in self.jobs and self.is_fleeting((job, attempt))}
        self.read_renewals()
        self.read_ends()

    def rows(self, statement):
        return self.db.execute(statement).fetchall()

    def wrong(self, what, *details):
        finding = what + (': ' + ', '.join(str(detail)[:300] for detail in details[:6]) if details else '')
        if finding not in self.found:
            self.found.append(finding)

    def none_of(self, statements):
        for what, statement in statements.items():
            for row in self.rows(statement)[:3]:
                self.wrong(what, row)

    def succeeded(self, do):
        return [operation for operation in self.story.done(do) if operation['answer'][0]]

    def enqueue_of(self, mark):
        """The call that left the mark, if it is known."""
        return self.labels.get((mark or '').rpartition('/')[0])

    def moved(self):
        """The jobs that may have another time or priority than they were enqueued with."""
        return {operation['job'] for operation in self.story.by['reschedule'] if operation['outcome'] != 'raised'}

    def doubt_what_was_not_yet_on_disk(self):
        """With synchronous_commit = off all but claims may be lost in a crash, if they were acknowledged shortly before."""
        if self.run['mode'] != 'async':
            return
        for died in self.story.by['server died']:
            begins = min((event['mono'] for event in self.story.by['server began'] if event['mono'] > died['mono']), default=died['mono'])
            for operation in self.story.operations:
                done = operation['outcome'] == 'done' and operation['do'] != 'claim'
                if done and died['mono'] - ASYNCHRONOUS <= operation['received'] <= begins:
                    operation['outcome'] = 'unknown'

    def read_tables(self):
        self.jobs = {job: Job(*rest) for job, *rest in self.rows(JOBS)}
        self.failures = collections.defaultdict(dict)
        for job, attempt, *rest in self.rows(FAILURES):
            self.failures[job][attempt] = Failure(*rest)
        self.resets = collections.defaultdict(set)
        for job, attempt in self.rows('SELECT job_id, attempt FROM chaos.reset'):
            self.resets[job].add(attempt)
        self.effects = self.rows('SELECT job_id, attempt FROM chaos.effect')

    def read_claims(self):
        for operation in self.story.done('claim'):
            for handed in map(Handed._make, operation['answer']):
                token = handed.job, handed.attempt
                if token in self.attempts:
                    self.wrong('a token was handed out twice', token, self.attempts[token].claim['label'], operation['label'])
                self.attempts[token] = Attempt(operation, handed)
                self.began_during(operation, token, handed.at)

    def is_fleeting(self, token):
        """Of a queue that does not keep what is completed."""
        return token in self.attempts and self.attempts[token].handed.queue == FLEETING

    def began_during(self, operation, token, began):
        """A lease is as long as it was asked to be."""
        if self.run['mode'] != 'clock' and not operation['mono'] - SLACK < began - self.run['offset'] < operation['received'] + SLACK:
            self.wrong('a lease of another length', token, operation['label'], began - self.run['offset'] - operation['mono'])

    def read_renewals(self):
        """In the order of each worker's log: a token has one worker."""
        for operation in self.story.operations:
            if operation['do'] not in ('renew', 'renew batch'):
                continue
            tokens = tokens_of(operation)
            if operation['outcome'] == 'unknown':
                for token in tokens:
                    if token in self.attempts:
                        self.attempts[token].doubtful = True
            elif operation['outcome'] == 'done':
                answers = operation['answer'] if 'tokens' in operation else [operation['answer']]
                for token, (until, at) in zip(tokens, answers):
                    self.renewed(token, until, at, operation)

    def renewed(self, token, until, at, operation):
        if token not in self.attempts:
            self.wrong('a lease was renewed that nobody was given', token)
        elif until is None:
            self.refused.append((token, at, operation))
        else:
            attempt = self.attempts[token]
            # after a renewal that nobody heard of the lease's own length is not known
            attempt.length = operation.get('length') or (until - at if attempt.doubtful else attempt.length)
            attempt.until, attempt.renewed, attempt.doubtful = until, operation, False
            self.began_during(operation, token, until - attempt.length)

    def read_ends(self):
        for operation in self.story.by['claim']:
            # who completes and claims is not told which of them he still held
            if operation['outcome'] != 'raised':
                for token in operation.get('ending', []):
                    self.possible[tuple(token)].add('complete')
        for operation in self.story.operations:
            if operation['do'] not in ('complete', 'complete batch', 'fail', 'snooze'):
                continue
            kind = operation['do'].removesuffix(' batch')
            tokens = tokens_of(operation)
            if operation['outcome'] == 'unknown':
                for token in tokens:
                    self.possible[token].add(kind)
            elif operation['outcome'] == 'done':
                answers = operation['answer'] if 'tokens' in operation else [operation['answer']]
                for token, (held, at) in zip(tokens, answers):
                    self.ended(token, kind, operation, held, at)

    def ended(self, token, kind, operation, held, at):
        if not held:
            self.refused.append((token, at, operation))
        elif token not in self.attempts:
            self.wrong('an attempt was ended that nobody was given', token, operation['label'])
        elif self.attempts[token].end:
            self.wrong('an attempt was ended twice', token, self.attempts[token].end[1]['label'], operation['label'])
        else:
            self.attempts[token].end = kind, operation, at
