"""Compares what the processes of a run wrote down with the database, and names each contradiction.

What was acknowledged must be so; what was refused or rolled back must not; what is in the tables must be certain or possible. Times are the
server's, but where its clock was moved.
"""
import tables
from attempts import Attempts
from enqueues import Enqueues
from groups import Groups
from interventions import Interventions
from leases import Leases
from remains import Remains

EXPECTED_KINDS = [
    'claim', 'claim and roll back', 'complete', 'complete batch', 'complete and roll back', 'fail', 'snooze', 'renew', 'renew batch', 'wait',
    'enqueue', 'enqueue keyed', 'enqueue and roll back', 'cancel', 'cancel key', 'retry', 'reschedule', 'pause', 'resume', 'alter', 'set group',
    'observe']
EXPECTED_TRUE = ['cancel', 'retry', 'reschedule']
# Seconds after which everything has been tried.
ENOUGH = 20


class Audit(Enqueues, Attempts, Groups, Interventions, Leases, Remains):
    def __init__(self, db, story, server_log=''):
        super().__init__(db, story)
        self.server_log = server_log

    def contradictions(self):
        for check in (self.the_run_itself, self.the_tables, self.each_enqueue, self.each_keyed, self.keys, self.each_claim, self.each_attempt,
                      self.each_end, self.counters, self.waits, self.group_keys, self.first_in_first_out, self.cancels, self.retries,
                      self.pauses, self.leases, self.late_workers, self.graces, self.sweeps, self.what_is_left, self.lanes, self.memory,
                      self.the_server_log):
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
