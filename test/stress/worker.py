"""Claims jobs and ends them in every way there is: some too late, some never, some while it dies.

A token is (job_id, attempt). What a job does is a row in chaos.effect, written in the transaction of its completion. Each claim names itself
as the worker, so that every attempt in the tables leads to the call that took it.
"""
import json
import time

from actor import CLOCK, Actor

CLAIMED = """SELECT job_id, attempt, task, extract(epoch FROM lease_expires_at - %s::interval)::float8,
    extract(epoch FROM lease_expires_at)::float8, queue, priority, tries, crashes, payload ->> 'mark', group_key FROM """
STILL_HELD = """SELECT job_id, attempt FROM jobq.lease JOIN unnest(%s::bigint[], %s::int[]) AS t (job_id, attempt) USING (job_id, attempt)
    ORDER BY attempt, job_id FOR UPDATE OF lease"""
LENGTHS = {'1 s': 1, '2 s': 2, '4 s': 4}


def one_a_job(tokens):
    """A batch answers with ids of jobs, which do not tell two attempts of one job apart."""
    return list(dict(tokens).items())


def columns(tokens):
    return [token[0] for token in tokens], [token[1] for token in tokens]


def result_of(token, label):
    return {'by': label, 'job': token[0]}


def results_of(tokens, label):
    return json.dumps([result_of(token, label) for token in tokens])


class Worker(Actor):
    role = 'worker'

    def __init__(self, *place):
        super().__init__(*place)
        self.held = []
        self.past = []

    def step(self):
        way = self.random.random()
        if way < 0.02:
            self.end_at_the_last_moment()
        elif way < 0.03:
            self.stall()
        elif way < 0.032:
            self.die()
        elif not self.held or way < 0.2:
            self.claim()
        elif self.past and way < 0.28:
            # a worker that does not know that it is late: most of these have ended, some were forgotten and are not swept yet
            self.end(self.random.choice(self.past))
        else:
            token = self.held.pop(self.random.randrange(len(self.held)))
            self.past = self.past[-50:] + [token]
            self.end(token)
        if self.random.random() < 0.3:
            self.rest(0.02)

    # -- taking

    def claim(self):
        length = self.random.choice(['1 s', '1 s', '2 s', '4 s'])
        most = self.random.choice([1, 1, 2, 5, 10])
        queue = self.random.choice(self.run.queues)
        way = self.random.choices([self.claim_alone, self.claim_from, self.claim_in_a_block, self.claim_and_roll_back,
                                   self.claim_after_a_savepoint, self.complete_and_claim, self.wait_first], [40, 10, 10, 10, 7, 13, 10])[0]
        way(queue, most, length)

    def took(self, way, claim, queues, most, length, **fields):
        rows = self.act('claim', claim, length=LENGTHS[length], way=way, queues=queues, most=most, **fields)
        for job, attempt, task, *_ in rows or []:
            if task == 'poison':
                self.die()
            self.hold((job, attempt))
        return rows or []

    def hold(self, token):
        if token not in self.held:
            self.held.append(token)

    def claimed(self, label, queue, most, length):
        return self.rows(CLAIMED + 'jobq.claim(%s, %s, %s, %s)', length, queue, most, label, length)

    def claim_alone(self, queue, most, length):
        return self.took('alone', lambda label: self.claimed(label, queue, most, length), [queue], most, length)

    def claim_from(self, _, most, length):
        queues = self.random.sample(self.run.queues, len(self.run.queues))
        self.took('from', lambda label: self.rows(CLAIMED + 'jobq.claim_from(%s, %s, %s, %s)', length, queues, most, label, length),
                  queues, most, length)

    def claim_in_a_block(self, queue, most, length):
        pause = self.random.random() * 0.02

        def claim(label):
            with self.db.transaction():
                rows = self.claimed(label, queue, most, length)
                time.sleep(pause)
            return rows
        self.took('in a block', claim, [queue], most, length)

    def claim_and_roll_back(self, queue, most, length):
        """No try may be counted, and nothing of it may stay."""
        completes = self.random.random() < 0.5

        def claim(label):
            with self.rolled_back():
                rows = self.claimed(label, queue, most, length)
                for job, attempt, *_ in rows if completes else []:
                    self.rows('SELECT jobq.complete(%s, %s)', job, attempt)
            return [row[:2] for row in rows]
        self.act('claim and roll back', claim, queues=[queue])

    def claim_after_a_savepoint(self, queue, most, length):
        """One claim of a transaction is rolled back to a savepoint, the next one is kept."""
        def claim(label):
            with self.db.transaction():
                with self.rolled_back():
                    self.claimed('rolled back to a savepoint', queue, most, length)
                return self.claimed(label, queue, most, length)
        self.took('after a savepoint', claim, [queue], most, length)

    def wait_first(self, queue, most, length):
        self.act('wait', lambda _: self.row("CALL jobq.wait(%s, '0.3 s')", queue)[0])
        self.claim_alone(queue, most, length)

    def complete_and_claim(self, queue, most, length):
        ending, self.held = one_a_job(self.held[:3]), self.held[3:]

        def both(label):
            with self.db.transaction():
                # it does not say which of them were still held: those that nobody can take away from here on
                held = self.rows(STILL_HELD, *columns(ending))
                rows = self.rows(CLAIMED + 'jobq.complete_and_claim(%s::bigint[], %s::int[], %s, %s, %s, %s, %s)', length,
                                 *columns(ending), queue, most, label, length, results_of(ending, label))
                self.effect(held, label)
            return rows
        self.took('complete and claim', both, [queue], most, length, ending=ending)

    # -- ending

    def end(self, token):
        way = self.random.choices([self.complete, self.complete_batch, self.fail, self.snooze, self.renew, self.renew_batch, self.hold, self.forget],
                                  [35, 10, 15, 10, 8, 7, 8, 7])[0]
        way(token)

    def complete(self, token):
        if self.random.random() < 0.2:
            self.act('complete and roll back', lambda label: self.completed(token, label, keep=False), job=token[0], attempt=token[1])
        self.act('complete', lambda label: self.completed(token, label), job=token[0], attempt=token[1])

    def completed(self, token, label, keep=True):
        with self.db.transaction(force_rollback=not keep):
            held, at = self.row(f'SELECT jobq.complete(%s, %s, %s), {CLOCK}', *token, json.dumps(result_of(token, label)))
            self.effect([token] if held else [], label)
        return [held, at]

    def effect(self, tokens, label):
        """What these jobs do."""
        self.db.execute('INSERT INTO chaos.effect SELECT job_id, attempt, %s FROM unnest(%s::bigint[], %s::int[]) AS t (job_id, attempt)',
                        (label, *columns(tokens)))

    def complete_batch(self, token):
        tokens = one_a_job([token] + self.held[:4])
        del self.held[:4]
        self.random.shuffle(tokens)

        self.act('complete batch', lambda label: self.completed_batch(tokens, label), tokens=tokens)

    def completed_batch(self, tokens, label):
        with self.db.transaction():
            found = {row[0] for row in self.rows('SELECT * FROM jobq.complete_batch(%s::bigint[], %s::int[], %s)', *columns(tokens),
                                                 results_of(tokens, label))}
            self.effect([token for token in tokens if token[0] in found], label)
            at = self.row('SELECT ' + CLOCK)[0]
        return [[job in found, at] for job, _ in tokens]

    def fail(self, token):
        text = ' broken' * self.random.choice([1, 1, 1, 3000])
        wait, retry = self.random.choice([None, 0, 0.3]), self.random.random() < 0.85
        self.act('fail', lambda label: self.row(f'SELECT jobq.fail(%s, %s, %s, make_interval(secs => %s), %s), {CLOCK}', *token, label + text, wait, retry),
                 job=token[0], attempt=token[1], wait=wait, retry=retry)

    def snooze(self, token):
        wait = self.random.choice([0, 0.2])
        self.act('snooze', lambda _: self.row(f'SELECT jobq.snooze(%s, %s, make_interval(secs => %s)), {CLOCK}', *token, wait),
                 job=token[0], attempt=token[1], wait=wait)

    def renew(self, token):
        length = self.random.choice([None, '1 s', '2 s'])
        answer = self.act('renew', lambda _: self.row(f'SELECT extract(epoch FROM jobq.renew(%s, %s, %s))::float8, {CLOCK}', *token, length),
                          job=token[0], attempt=token[1], length=LENGTHS.get(length))
        if answer and answer[0] is not None:
            self.hold(token)

    def renew_batch(self, token):
        tokens = one_a_job(self.held[:5] + [token])
        del self.held[:5]

        def renew(_):
            found = dict(self.rows('SELECT job_id, extract(epoch FROM lease_expires_at)::float8 FROM jobq.renew_batch(%s::bigint[], %s::int[])',
                                   *columns(tokens)))
            at = self.row('SELECT ' + CLOCK)[0]
            return [[found.get(job), at] for job, _ in tokens]
        for held, (until, _) in zip(tokens, self.act('renew batch', renew, tokens=tokens) or []):
            if until is not None:
                self.hold(held)

    def forget(self, token):
        """As a worker that was killed forgets."""

    def end_at_the_last_moment(self):
        """Ends jobs when their leases expire, which is when a sweep looks at them too."""
        kept, self.held = self.held, []
        rows = self.claim_alone(self.random.choice(self.run.queues), 10, '1 s')
        if rows:
            now = self.act('look at the clock', lambda _: self.row('SELECT ' + CLOCK)[0]) or rows[0][4]
            time.sleep(min(2, max(0, rows[0][4] - now + self.random.uniform(-0.005, 0.02))))
        for token in self.held[:]:
            if token in self.held:
                self.held.remove(token)
                self.end(token)
        self.held = one_a_job(kept + self.held)

    def stall(self):
        """Stands still for longer than most of its leases, then goes on as if nothing had been."""
        self.log.note('stalls', tokens=self.held)
        time.sleep(self.random.uniform(1, 2.5))
        self.past += self.held
