#!/usr/bin/env python3
"""Compares load.py's log with the database, and prints each contradiction. Exit code 0: none.

    audit.py --log DIR [--server-log FILE]     audits
    ... --managed                              a manager swept too, whose counts nobody noted
    audit.py --log DIR --self-test             damages a copy of the log, or the tables in a transaction that is rolled back, in each of the
                                               ways that an audit is for, and fails unless each of them is found
"""
import argparse
import collections
import copy
import glob
import json
import os
import sys

import psycopg

LINES = ['delayed', 'ready', 'lease', 'finished']


def read_log(folder):
    events = []
    for name in sorted(glob.glob(os.path.join(folder, '*.log'))):
        with open(name) as file:
            events += [json.loads(line) for line in file]
    return events


class Audit:
    def __init__(self, db, events, server_log='', managed=False):
        self.db = db
        self.events = events
        self.server_log = server_log
        self.managed = managed
        self.found = []
        self.by = collections.defaultdict(list)
        for event in events:
            self.by[event['event']].append(event)

    def rows(self, statement):
        return self.db.execute(statement).fetchall()

    def wrong(self, what, *details):
        self.found.append(what + (': ' + ', '.join(str(d) for d in details[:5]) if details else ''))

    def none(self, what, statement):
        rows = self.rows(statement)
        if rows:
            self.wrong(what, *rows)

    def run(self):
        self.claims = collections.defaultdict(dict)
        self.read()
        self.run_itself()
        self.log_alone()
        self.tables_alone()
        self.log_and_tables()
        return self.found

    def read(self):
        self.jobs = {row[0]: row[1:] for row in self.rows(
            'SELECT j.job_id, coalesce(d.attempt, r.attempt, l.attempt, f.attempt), f.state, l.attempt, j.job_key IS NULL, q.name'
            ' FROM jobq.job j LEFT JOIN jobq.queue q USING (queue_id) LEFT JOIN jobq.delayed d USING (job_id) LEFT JOIN jobq.ready r USING (job_id) LEFT JOIN jobq.lease l USING (job_id)'
            ' LEFT JOIN jobq.finished f USING (job_id)')}
        self.failures = collections.defaultdict(dict)
        for job, attempt, kind in self.rows('SELECT job_id, attempt, kind FROM jobq.failure'):
            self.failures[job][attempt] = kind

    def run_itself(self):
        """The run was one: it began, it ended, all of its actors acted, and no error came that a caller need not expect."""
        if len(self.by['started']) != 1 or len(self.by['ended']) != 1:
            self.wrong('the run did not come to its end')
        for kind in ['claimed', 'completed', 'failed', 'snoozed', 'renewed', 'refused', 'rolled back', 'enqueued', 'not enqueued', 'swept', 'cancelled']:
            if not self.by[kind]:
                self.wrong('nothing was ever ' + kind)
        if not any(kind == 'expired' for job in self.failures.values() for kind in job.values()):
            self.wrong('no lease ever expired')
        for event in self.by['error']:
            self.wrong('unexpected error', event['sqlstate'], event['message'], event.get('where', ''))
        if self.by['started']:
            before = self.by['started'][0]['deadlocks']
            now = self.rows('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()')[0][0]
            if now > before:
                self.wrong('deadlocks, by the server\'s count', now - before)
        for word in ['deadlock detected', 'sweep could not', 'PANIC', 'was terminated by signal', 'TRAP:']:
            if word in self.server_log:
                self.wrong(f'the server log has "{word}"')

    def log_alone(self):
        """No token given out twice, no two leases of a job valid at one time, nothing completed twice."""
        # one worker has a token, so its log has the renewals in their order; a renewal may shorten the lease
        renewed = {(event['job'], event['attempt']): event['until'] for event in self.by['renewed']}
        ended = {}
        for kind in ['completed', 'failed', 'snoozed']:
            for event in self.by[kind]:
                token = event['job'], event['attempt']
                if token in ended:
                    self.wrong('an attempt was ended twice', token)
                ended[token] = event['at']
        cancelled = collections.defaultdict(list)
        for event in self.by['cancelled']:
            cancelled[event['job']].append(event['at'])
        for event in self.by['claimed']:
            job, attempt = event['job'], event['attempt']
            if attempt in self.claims[job]:
                self.wrong('handed out twice', (job, attempt))
            self.claims[job][attempt] = event
        # cancel_key and complete_and_claim end attempts too without saying which
        unsure = {(e['job'], e['attempt']) for e in self.by['perhaps completed']}
        for job, attempts in self.claims.items():
            order = sorted(attempts)
            for earlier, later in zip(order, order[1:]):
                token = job, earlier
                end = renewed.get(token, attempts[earlier]['until'])
                if token in ended:
                    end = min(end, ended[token])
                for at in cancelled[job]:
                    if at >= attempts[earlier]['at']:
                        end = min(end, at)
                if self.failures[job].get(earlier) == 'cancelled' or token in unsure:
                    continue
                if attempts[later]['at'] < end:
                    self.wrong('two leases at once', token, later, end - attempts[later]['at'])
            for earlier, later in zip(order, order[1:]):
                if attempts[later]['at'] < attempts[earlier]['at']:
                    self.wrong('attempts go back in time', (job, earlier, later))
        twice = collections.Counter(event['job'] for event in self.by['completed'])
        self.completed = {event['job']: event['attempt'] for event in self.by['completed']}
        for job, number in twice.items():
            if number > 1:
                self.wrong('completed twice', job)
        for event in self.by['renewed']:
            if event['attempt'] not in self.claims[event['job']]:
                self.wrong('a lease was renewed that nobody was given', event)

    def tables_alone(self):
        """Promise 1: exactly one line a job, no line without its job, a key for each live keyed job and for no other."""
        lines = ' UNION ALL '.join(f"SELECT job_id, queue_id, '{line}' AS line FROM jobq.{line}" for line in LINES)
        self.none('a job that is not in exactly one line',
                  f'SELECT job_id, count(line), min(line), max(line) FROM jobq.job LEFT JOIN ({lines}) l USING (job_id) GROUP BY 1 HAVING count(line) <> 1')
        self.none('a line without its job', f'SELECT job_id, line FROM ({lines}) l WHERE job_id NOT IN (SELECT job_id FROM jobq.job)')
        self.none('a line of another queue than its job', f'SELECT job_id, line FROM ({lines}) l JOIN jobq.job j USING (job_id) WHERE l.queue_id <> j.queue_id')
        self.none('a job without a queue', 'SELECT job_id FROM jobq.job WHERE queue_id NOT IN (SELECT queue_id FROM jobq.queue)')
        self.none('a key without a live job', 'SELECT job_key, job_id FROM jobq.key WHERE job_id NOT IN '
                  '(SELECT job_id FROM jobq.delayed UNION ALL SELECT job_id FROM jobq.ready UNION ALL SELECT job_id FROM jobq.lease)')
        self.none('a live keyed job without its key', 'SELECT job_id FROM jobq.job j WHERE job_key IS NOT NULL AND NOT EXISTS (SELECT FROM jobq.finished f WHERE f.job_id = j.job_id)'
                  ' AND NOT EXISTS (SELECT FROM jobq.lease l WHERE l.job_id = j.job_id AND replaced_by IS NOT NULL)'
                  ' AND NOT EXISTS (SELECT FROM jobq.key k WHERE k.job_id = j.job_id AND k.job_key = j.job_key AND k.queue_id = j.queue_id)')
        self.none('a failure without its job', 'SELECT job_id, attempt FROM jobq.failure WHERE job_id NOT IN (SELECT job_id FROM jobq.job)')
        self.none('a death without a reason', "SELECT job_id FROM jobq.finished WHERE state = 'dead' AND coalesce(reason, '') = ''")
        self.none('times that cannot be', "SELECT job_id, claimed_at, ended_at FROM jobq.finished WHERE ended_at < claimed_at OR ended_at < '2020-01-01'")
        self.none('failure times that cannot be', "SELECT job_id, claimed_at, failed_at FROM jobq.failure WHERE failed_at < claimed_at OR claimed_at < '2020-01-01'")
        self.none('live jobs after the drain', 'SELECT job_id, queue, state FROM jobq.jobs')

    def log_and_tables(self):
        """What was acknowledged is so; what was rolled back is not; a try was counted by each committed claim and by nothing else."""
        acknowledged = {job for event in self.by['enqueued'] for job in event['jobs']}
        for job in sorted(acknowledged - self.jobs.keys()):
            self.wrong('an acknowledged job is lost', job)
        for job in sorted(self.jobs.keys() - acknowledged):
            self.wrong('a job that nobody enqueued', job)
        for event in self.by['not enqueued']:
            for job in event['jobs']:
                if job in self.jobs:
                    self.wrong('a rolled back job is there', job)
        snoozes = collections.Counter(event['job'] for event in self.by['snoozed'])
        unsure = {(event['job'], event['attempt']) for event in self.by['perhaps completed']}
        retried = {event['job'] for event in self.by['retried']}
        for job, (attempt, state, leased, is_plain, queue) in self.jobs.items():
            attempt = attempt or 0
            if sorted(self.claims[job]) != list(range(1, attempt + 1)):
                self.wrong('the attempts of a job are not its committed claims', job, attempt, sorted(self.claims[job]))
            # each attempt has its end: a failure, a snooze, the completion, or the lease that is still open
            ends = len(self.failures[job]) + snoozes[job] + (state == 'completed') + (leased is not None)
            if ends != attempt:
                self.wrong('an attempt without an end, or an end too many', job, attempt, state, dict(self.failures[job]), snoozes[job])
            for failed in self.failures[job]:
                if failed not in self.claims[job]:
                    self.wrong('a failure of an attempt that never was', (job, failed))
            if job in self.completed and (state != 'completed' or self.completed[job] != attempt):
                self.wrong('a completion was acknowledged and is not there', job, self.completed[job], state, attempt)
            if state == 'completed' and self.completed.get(job) != attempt and (job, attempt) not in unsure:
                self.wrong('a job is completed that nobody completed', job, attempt)
            # promise 2: five tries, three deaths of workers in a row; a job that was brought back or replaced has them anew
            if is_plain and queue == 'stress a' and job not in retried:
                kinds = [self.failures[job].get(a) for a in range(1, attempt + 1)]
                if sum(kind in ('error', 'expired') for kind in kinds) > 5:
                    self.wrong('more tries than the limit', job, kinds)
                if any(kinds[i:i + 4] == ['expired'] * 4 for i in range(len(kinds))):
                    self.wrong('more deaths of workers in a row than the limit', job, kinds)
        for kind, expected in [('failed', 'error'), ('snoozed', None)]:
            for event in self.by[kind]:
                if self.failures[event['job']].get(event['attempt']) != expected:
                    self.wrong(f'an attempt that {kind} has another record', event, self.failures[event['job']].get(event['attempt']))
        # a keyed job that was replaced while it ran ends as cancelled when it expires, which no count shows
        expired = collections.Counter(self.jobs[job][3] for job in self.jobs for kind in self.failures[job].values() if kind == 'expired')
        swept = sum(event['retried'] + event['died'] for event in self.by['swept'])
        least = 0 if self.managed else expired[True]
        if not least <= swept <= expired[True] + expired[False]:
            self.wrong('the sweeps counted other than the failures of kind expired', swept, expired[True], expired[False])


def self_test(db, events, server_log, managed):
    """Each damage must be found, and named as what it is."""
    completed = [e for e in events if e['event'] == 'completed']
    claimed = [e for e in events if e['event'] == 'claimed']
    attempts = collections.defaultdict(list)
    for event in claimed:
        attempts[event['job']].append(event)
    ended = {(e['job'], e['attempt']) for e in events if e['event'] in ('completed', 'failed', 'snoozed', 'perhaps completed')}
    lost = {row for row in db.execute("SELECT job_id, attempt FROM jobq.failure WHERE kind = 'expired'").fetchall()}
    pairs = [sorted(a, key=lambda e: e['attempt'])[:2] for a in attempts.values() if len(a) > 1]
    pair = next(p for p in pairs if (p[0]['job'], p[0]['attempt']) in lost and (p[0]['job'], p[0]['attempt']) not in ended)

    def without(event):
        return [e for e in events if e is not event]

    def changed(event, **fields):
        return [{**e, **fields} if e is event else e for e in events]

    log_damages = [
        ('handed out twice', events + [copy.deepcopy(claimed[0])]),
        ('completed twice', events + [{**completed[0], 'attempt': completed[0]['attempt'] + 1}]),
        ('an attempt was ended twice', events + [copy.deepcopy(completed[0])]),
        ('two leases at once', changed(pair[1], at=pair[0]['at'] + 0.001)),
        ('attempts go back in time', changed(pair[1], at=pair[0]['at'] - 1)),
        ('the attempts of a job are not its committed claims', without(claimed[-1])),
        ('an acknowledged job is lost', events + [{'event': 'enqueued', 'jobs': [10**15]}]),
        ('a job that nobody enqueued', without(next(e for e in events if e['event'] == 'enqueued' and e.get('plain')))),
        ('a rolled back job is there', events + [{'event': 'not enqueued', 'jobs': [completed[0]['job']]}]),
        ('a completion was acknowledged and is not there', events + [{'event': 'completed', 'job': next(
            e['job'] for e in events if e['event'] == 'failed' and e['state'] == 'dead' and e['job'] not in {c['job'] for c in completed}), 'attempt': 1, 'at': 0}]),
        ('a job is completed that nobody completed', without(completed[-1])),
        ('an attempt without an end', without(next(e for e in events if e['event'] == 'snoozed'))),
        *([] if managed else [('the sweeps counted other', [e for e in events if e['event'] != 'swept'])]),
        ('the sweeps counted other', events + [{'event': 'swept', 'promoted': 0, 'retried': 10**6, 'died': 0}]),
        ('unexpected error', events + [{'event': 'error', 'sqlstate': 'XX000', 'message': 'x'}]),
        ('the run did not come to its end', [e for e in events if e['event'] != 'ended']),
        ('nothing was ever renewed', [e for e in events if e['event'] != 'renewed']),
        ('a lease was renewed that nobody was given', events + [{'event': 'renewed', 'job': claimed[0]['job'], 'attempt': 10**6, 'until': 0}]),
    ]
    a_job = completed[0]['job']
    retried = ','.join(str(e['job']) for e in events if e['event'] == 'retried')
    table_damages = [
        ('a job that is not in exactly one line', f'DELETE FROM jobq.finished WHERE job_id = {a_job}'),
        ('a job that is not in exactly one line', f"INSERT INTO jobq.delayed SELECT job_id, queue_id, now(), 1, 1, 0 FROM jobq.job WHERE job_id = {a_job}"),
        ('a line without its job', f'DELETE FROM jobq.job WHERE job_id = {a_job}'),
        ('an acknowledged job is lost', f'DELETE FROM jobq.job WHERE job_id = {a_job}'),
        ('a line of another queue', f'UPDATE jobq.finished SET queue_id = queue_id + 1 WHERE job_id = {a_job}'),
        ('a job without a queue', "DELETE FROM jobq.queue WHERE name = 'stress a'"),
        ('a key without a live job', f"INSERT INTO jobq.key SELECT queue_id, 'k', job_id FROM jobq.job WHERE job_id = {a_job}"),
        ('a live keyed job without its key', "WITH f AS (DELETE FROM jobq.finished WHERE job_id = (SELECT max(job_id) FROM jobq.job WHERE job_key IS NOT NULL) RETURNING *)"
            ' INSERT INTO jobq.delayed SELECT job_id, queue_id, now(), attempt, tries, 0 FROM f'),
        ('live jobs after the drain', f'WITH f AS (DELETE FROM jobq.finished WHERE job_id = {a_job} RETURNING *) INSERT INTO jobq.delayed SELECT job_id, queue_id, now(), attempt, tries, 0 FROM f'),
        ('a failure without its job', "INSERT INTO jobq.failure SELECT 10^15::bigint, attempt, kind, claimed_at, failed_at, worker, error FROM jobq.failure LIMIT 1"),
        ('an attempt without an end', 'DELETE FROM jobq.failure WHERE (job_id, attempt) = (SELECT job_id, attempt FROM jobq.failure LIMIT 1)'),
        ('a failure of an attempt that never was', 'UPDATE jobq.failure SET attempt = attempt + 1000 WHERE (job_id, attempt) = (SELECT job_id, attempt FROM jobq.failure LIMIT 1)'),
        *[(name, f"""WITH j AS (SELECT job_id FROM jobq.job JOIN jobq.queue USING (queue_id) WHERE job_key IS NULL AND name = 'stress a' AND job_id <> ALL ('{{{retried}}}') LIMIT 1),
            f AS (UPDATE jobq.finished SET attempt = 10 WHERE job_id = (SELECT job_id FROM j))
            INSERT INTO jobq.failure (job_id, attempt, kind, claimed_at, failed_at, worker) SELECT job_id, a, 'expired', now(), now(), 'w' FROM j, generate_series(1, 10) a
            ON CONFLICT (job_id, attempt) DO UPDATE SET kind = 'expired'""")
            for name in ('more tries than the limit', 'more deaths of workers in a row than the limit')],
        ('has another record', "UPDATE jobq.failure SET kind = 'cancelled' WHERE kind = 'error'"),
        ('the attempts of a job are not its committed claims', f'UPDATE jobq.finished SET attempt = attempt + 1 WHERE job_id = {a_job}'),
        ('the attempts of a job are not its committed claims', f'UPDATE jobq.finished SET attempt = attempt - 1 WHERE job_id = {a_job}'),
        ('a completion was acknowledged and is not there', f"UPDATE jobq.finished SET state = 'dead' WHERE job_id = {a_job}"),
        ('a death without a reason', "UPDATE jobq.finished SET reason = NULL WHERE state = 'dead'"),
        ('times that cannot be', f"UPDATE jobq.finished SET claimed_at = ended_at + interval '1 s' WHERE job_id = {a_job}"),
        ('failure times that cannot be', "UPDATE jobq.failure SET claimed_at = 'epoch'"),
    ]
    bad = 0

    def check(name, how, found):
        nonlocal bad
        good = any(name in finding for finding in found)
        bad += not good
        print(f'{"ok" if good else "NOT FOUND"} - {name} ({how})')

    def audit(events, server_log=server_log):
        return Audit(db, events, server_log, managed).run()

    with db.transaction(force_rollback=True):
        check('the server log has', 'server log', audit(events, server_log + '\nERROR:  deadlock detected\n'))
        for name, damaged in log_damages:
            check(name, 'log', audit(damaged))
    for name, statement in table_damages:
        with db.transaction(force_rollback=True):
            db.execute(statement)
            check(name, 'tables', audit(events))
    total = len(log_damages) + len(table_damages) + 1
    print(f'{total - bad} of {total} damages were found')
    return bad == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--log', required=True)
    parser.add_argument('--server-log')
    parser.add_argument('--managed', action='store_true')
    parser.add_argument('--self-test', action='store_true')
    options = parser.parse_args()
    events = read_log(options.log)
    server_log = ''
    if options.server_log:
        with open(options.server_log, errors='replace') as file:
            server_log = file.read()
    with psycopg.connect(autocommit=True) as db:
        if options.self_test:
            sys.exit(0 if self_test(db, events, server_log, options.managed) else 1)
        found = Audit(db, events, server_log, options.managed).run()
        counts = collections.Counter(event['event'] for event in events)
        print(', '.join(f'{number} {kind}' for kind, number in sorted(counts.items())))
        for finding in found[:50]:
            print('WRONG: ' + finding)
        print(f'{len(found)} contradictions')
        sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
