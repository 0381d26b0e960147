"""Damages of what was written down, or of the tables (in a transaction that is rolled back). An audit must find each, and name it as what
it is; or it proves nothing."""
import copy

from audit import Audit
from known import FLEETING, Handed
from log import Story

LANE = "ALTER VIEW jobq.lanes RENAME TO true_lanes; CREATE VIEW jobq.lanes AS SELECT 'chaos a' AS queue, 5 AS priority, {}"
SOME_FAILURE = '(SELECT job_id, attempt FROM jobq.failure LIMIT 1)'
MANY_FAILURES = """WITH j AS (SELECT job_id FROM jobq.job JOIN jobq.finished USING (job_id) WHERE job_id NOT IN (SELECT job_id FROM chaos.reset) LIMIT 1),
    f AS (UPDATE jobq.finished SET attempt = 10 WHERE job_id = (SELECT job_id FROM j))
    INSERT INTO jobq.failure (job_id, attempt, kind, claimed_at, failed_at, worker) SELECT job_id, a, 'expired', now(), now(), 'w' FROM j, generate_series(1, 10) AS a
    ON CONFLICT (job_id, attempt) DO UPDATE SET kind = 'expired'"""


class Damaged:
    """A copy of the story in which one thing is otherwise: one of a job that is certainly in the tables."""

    def __init__(self, story):
        self.story = copy.deepcopy(story)

    def first(self, do, fits=lambda operation: True):
        return next(operation for operation in self.story.operations if operation['do'] == do and operation['outcome'] == 'done' and fits(operation))

    def without(self, operation):
        return Story([other for other in self.story.operations if other is not operation], self.story.events)

    def and_again(self, operation, **fields):
        return Story(self.story.operations + [{**copy.deepcopy(operation), **fields}], self.story.events)

    def and_event(self, **fields):
        return Story(self.story.operations, self.story.events + [{'actor': 'main', 'mono': 0, **fields}])

    def changed(self, operation, **fields):
        operation.update(fields)
        return Story(self.story.operations, self.story.events)


def held(operation):
    """Of a job that nobody brought back: what a retry excuses is no damage."""
    return operation['answer'] and operation['answer'][0] and operation['job'] in Damaged.there - Damaged.reset


def handed(operation):
    return any(row[0] in Damaged.there for row in operation['answer'])


def is_batch(operation):
    return operation['number'] == 6 and set(operation['answer']) <= Damaged.there


def is_alone(operation):
    return is_batch({**operation, 'number': 6}) and not set(operation['answer']) & Damaged.reset


def of_the_log(story):
    def damaged(change):
        return lambda: change(Damaged(story))

    def move_claim(damage, seconds):
        """The second claim of a job whose first lease expired."""
        ended = {(o['job'], o['attempt']) for do in ('complete', 'fail', 'snooze') for o in damage.story.by[do] if o['outcome'] != 'raised'}
        rows = {(row[0], row[1]): row for claim in damage.story.done('claim') for row in claim['answer']}
        unsure = {tuple(t) for o in damage.story.operations for t in o.get('ending', []) + o.get('tokens', [])}
        job, attempt = next(t for t in rows if t[0] in Damaged.there and (t[0], t[1] + 1) in rows and t not in ended and t not in unsure)
        rows[job, attempt + 1][3] = rows[job, attempt][3] + seconds
        return Story(damage.story.operations, damage.story.events)

    yield 'a token was handed out twice', damaged(lambda d: d.and_again(d.first('claim', lambda o: o['answer'])))
    yield 'an attempt was ended twice', damaged(lambda d: d.and_again(d.first('complete', held)))
    yield 'an attempt was ended that nobody was given', damaged(lambda d: d.and_again(d.first('complete', held), attempt=10**6))
    yield 'is recorded as', damaged(lambda d: d.changed(d.first('fail', held), do='complete'))
    yield 'that nobody ended so', damaged(lambda d: d.without(d.first('complete', held)))
    yield 'that nobody ended so', damaged(lambda d: d.without(d.first('fail', held)))
    yield 'an attempt without an end', damaged(lambda d: d.without(d.first('snooze', held)))
    yield 'two leases at once', damaged(lambda d: move_claim(d, 0.001))
    yield 'attempts go back in time', damaged(lambda d: move_claim(d, -1))
    yield 'an attempt that nobody claimed', damaged(lambda d: d.without(d.first('claim', handed)))
    yield 'a committed claim is not counted', damaged(lambda d: d.and_again(d.first('claim', handed), answer=[row_of(d, attempt=1000)]))
    yield 'the counters are miscounted', damaged(lambda d: d.changed(d.first('claim', handed), answer=[row_of(d, tries=1000)]))
    yield 'another job was handed out', damaged(lambda d: d.changed(d.first('claim', handed), answer=[row_of(d, queue='x')]))
    yield 'a job of another priority', damaged(lambda d: changed_all(d, 'enqueue', priority=10))
    yield 'a lease of another length', damaged(lambda d: d.changed(d.first('claim', handed), answer=[row_of(d, at=0)]))
    yield 'more jobs than were asked for', damaged(lambda d: d.changed(d.first('claim', handed), most=0))
    yield 'a job of another queue', damaged(lambda d: d.changed(d.first('claim', handed), queues=['x']))
    yield 'jobs out of order', damaged(lambda d: d.changed(d.first('claim', handed), answer=[row_of(d, priority=1), row_of(d, priority=0)]))
    yield 'a claim before its time', damaged(lambda d: d.changed(d.first('enqueue', is_batch), wait=10**6))
    yield 'a claim before its time', damaged(lambda d: changed_all(d, 'snooze', wait=10**6))
    yield 'a claim before its time', damaged(lambda d: changed_all(d, 'fail', wait=10**6))
    yield 'an acknowledged job is lost', damaged(lambda d: d.and_again(d.first('enqueue'), answer=[10**15], label='nobody/1'))
    yield 'a job that nobody enqueued', damaged(lambda d: d.without(d.first('enqueue', is_batch)))
    yield 'a job that nobody enqueued', damaged(lambda d: d.changed(d.first('enqueue', is_batch), outcome='raised'))
    yield 'a key was given to two', damaged(lambda d: d.changed(second_of_a_key(d), received=0, mode='keep'))
    yield 'half a batch is there', damaged(lambda d: d.changed(d.first('enqueue', is_batch), outcome='unknown', number=7))
    yield 'half a batch is there', damaged(lambda d: d.changed(d.first('enqueue', is_batch), number=7))
    yield 'a key led to the job of another', damaged(lambda d: d.changed(d.first('enqueue keyed', there), key='x'))
    yield 'a key neither refused nor replaced', damaged(lambda d: d.changed(d.first('enqueue keyed', there), mode='reject', answer=[1, False, 0]))
    yield 'a key neither refused nor replaced', damaged(lambda d: d.changed(d.first('enqueue keyed', there), mode='replace', answer=[1, False, 0]))
    yield 'a job was to be kept and is rewritten', damaged(lambda d: d.changed(d.first('enqueue keyed', made_last), mode='keep', answer=not_new(d)))
    yield 'a job was to be rewritten and is as it was', damaged(lambda d: d.and_again(
        d.first('enqueue keyed', made_last), mode='replace', mono=10**9, answer=not_new(d), label='nobody/1'))
    yield 'a lease was renewed that nobody was given', damaged(lambda d: d.and_again(d.first('renew', held), attempt=10**6))
    yield 'a lease was renewed after its end', damaged(lambda d: d.and_again(d.first('renew', held), **token_of(d.first('complete', held)), mono=10**9))
    yield 'a lease expired before its time', damaged(lambda d: d.and_again(d.first('renew', held), **expired_of(d), answer=[10**10, 0]))
    yield 'a stale token was accepted', damaged(lambda d: d.and_again(d.first('renew', held), **early_of(d), mono=10**9))
    yield 'the sweeps counted other', damaged(lambda d: d.changed(d.first('sweep'), answer=[0, 10**6, 0]))
    yield 'unexpected error', damaged(lambda d: d.and_event(event='error', message='x'))
    yield 'the run did not come to its end', damaged(lambda d: Story(d.story.operations, [e for e in d.story.events if e['event'] != 'ended']))
    yield 'nobody ever did', damaged(lambda d: in_a_long_run(Story([o for o in d.story.operations if o['do'] != 'renew'], d.story.events)))
    yield 'a job is cancelled that nobody cancelled', damaged(lambda d: Story([o for o in d.story.operations if o['do'] != 'cancel'], d.story.events))
    yield 'a cancelled job is not', damaged(lambda d: d.and_again(d.first('cancel'), job=d.first('complete', held)['job'], answer=[True, 0], label='x/1'))
    yield 'a live job was not cancelled', damaged(lambda d: d.and_again(d.first('cancel'), answer=[False, 0], label='x/1', **just_enqueued(d)))
    yield 'a job did not come back', damaged(lambda d: d.changed(d.first('retry'), answer=[False, 1, 0]))
    yield 'a job did not come back', damaged(lambda d: d.changed(d.first('retry'), answer=[True, 1, 0]))
    yield 'a job did not come back', damaged(lambda d: d.changed(d.first('retry dead'), answer=[1, 0, 0]))
    yield 'a job came back without its key', damaged(lambda d: d.changed(d.first('retry dead'), answer=[1, 1, 1]))
    yield 'a sleeper was not woken', damaged(lambda d: d.and_again(d.first('wait'), do='sleep', answer=False))
    yield 'nobody ever succeeded to', damaged(lambda d: in_a_long_run(changed_all(d, 'cancel', answer=[False, 0])))
    yield 'a claim from a paused queue', damaged(paused_around_a_claim)
    yield 'a job of another group', damaged(lambda d: d.changed(d.first('claim', handed), answer=[row_of(d, group='x')]))
    yield 'a job overtook an older one', damaged(overtaken)
    yield 'jobs of a group out of order', damaged(out_of_order)
    yield 'a process grows', damaged(lambda d: Story(d.story.operations, d.story.events + [
        {'event': 'memory', 'actor': 'main', 'what': 'w', 'pid': 1, 'kilobytes': 1000 * n} for n in range(60)]))
    yield 'expired within the grace', damaged(lambda d: d.and_event(event='server began', at=first_expiry(d) - 0.1, gone=first_expiry(d) - 0.1, kind='x'))


def in_a_long_run(story):
    return Story(story.operations, [{**event, 'seconds': 60} if event['event'] == 'started' else event for event in story.events])


def second_of_a_key(damage):
    """Made as soon as the first one was."""
    seen = {}
    for operation in sorted(damage.story.done('enqueue keyed'), key=lambda one: one['received']):
        job, created, _ = operation['answer']
        if created and job in damage.there - damage.reset:
            first = seen.setdefault((operation['queue'], operation['key']), operation)
            if first is not operation:
                first['received'] = -1
                return operation
    raise StopIteration


def there(operation):
    return operation['answer'][0] in Damaged.there


def made_last(operation):
    """What it made was not rewritten."""
    return operation['answer'][1] and Damaged.marks.get(operation['answer'][0]) == f'{operation["label"]}/0'


def not_new(damage):
    return [damage.first('enqueue keyed', made_last)['answer'][0], False, 1]


def row_of(damage, **fields):
    """The first job that was handed out, otherwise."""
    row = next(row for row in damage.first('claim', handed)['answer'] if row[0] in Damaged.there)
    return list(Handed._make(row)._replace(**fields))


def changed_all(damage, do, **fields):
    for operation in damage.story.by[do]:
        operation.update(fields)
    return damage.story


def just_enqueued(damage):
    """The job that lived longest: one that ended at once may have ended before the cancel came."""
    enqueue = max((one for one in damage.story.done('enqueue') if is_alone(one)), key=lambda one: damage.ended[one['answer'][0]] - one['received'])
    return {'job': enqueue['answer'][0], 'mono': enqueue['received'] + 1e-6, 'received': enqueue['received'] + 2e-6}


def paused_around_a_claim(damage):
    claim = damage.first('claim', handed)
    pause = {**damage.first('pause'), 'queue': Handed._make(claim['answer'][0]).queue, 'received': claim['mono'] - 1e-6}
    resume = {**pause, 'do': 'resume', 'mono': claim['received'] + 1e-6}
    return Story([one for one in damage.story.operations if one['do'] != 'resume'] + [pause, resume], damage.story.events)


def with_a_younger(damage):
    """The claim of a job that was ready, as it is told, before all others were enqueued; the job; and one of its group that came right
    after it."""
    first = {(row[0], row[1]): claim for claim in damage.story.done('claim') for row in claim['answer']}
    touched = {one['job'] for do in ('cancel', 'reschedule', 'retry') for one in damage.story.by[do]}
    enqueue = damage.first('enqueue', lambda one: one['wait'] == 0 and (one['answer'][0], 1) in first and one['answer'][0] not in touched)
    claim = first[enqueue['answer'][0], 1]
    older = Handed._make(next(row for row in claim['answer'] if row[0] == enqueue['answer'][0]))
    enqueue['received'] = -4
    damage.story.operations.append({**enqueue, 'label': 'nobody/1', 'mono': -3, 'answer': [10**15]})
    return claim, older, older._replace(job=10**15, mark='nobody/1/0')


def overtaken(damage):
    claim, _, younger = with_a_younger(damage)
    return damage.and_again(claim, label='nobody/2', mono=-2, received=-1, answer=[list(younger)])


def out_of_order(damage):
    claim, older, younger = with_a_younger(damage)
    return damage.changed(claim, answer=[list(younger), list(older)])


def token_of(operation):
    return {'job': operation['job'], 'attempt': operation['attempt']}


def early_of(damage):
    """A token whose job was claimed again."""
    tokens = {(row[0], row[1]) for claim in damage.story.done('claim') for row in claim['answer']}
    job, attempt = next(t for t in sorted(tokens) if (t[0], t[1] + 1) in tokens)
    return {'job': job, 'attempt': attempt}


def expired_of(damage):
    return {'job': damage.expired[0], 'attempt': damage.expired[1]}


def first_expiry(damage):
    return damage.expired[2]


def of_the_tables(job):
    yield 'a job that is not in exactly one line', f'DELETE FROM jobq.finished WHERE job_id = {job}'
    yield 'a job that is not in exactly one line', f'INSERT INTO jobq.delayed SELECT job_id, queue_id, now(), 1, 1, 0 FROM jobq.job WHERE job_id = {job}'
    yield 'a line without its job', f'DELETE FROM jobq.job WHERE job_id = {job}'
    yield 'an acknowledged job is lost', f'DELETE FROM jobq.job WHERE job_id = {job}'
    yield 'a line of another queue than its job', f'UPDATE jobq.finished SET queue_id = queue_id + 1 WHERE job_id = {job}'
    yield 'a job without a queue', "DELETE FROM jobq.queue WHERE name = 'chaos a'"
    yield 'a ready job of another group', f"""WITH f AS (DELETE FROM jobq.finished WHERE job_id = {job} RETURNING *)
        INSERT INTO jobq.ready SELECT queue_id, 1, job_id, attempt, tries, 0, priority, 'x' FROM f JOIN jobq.job USING (queue_id, job_id)"""
    yield 'a job of another group', f"UPDATE jobq.job SET group_key = 'x' WHERE job_id = {job}"
    yield 'a weight of a group without a queue', "INSERT INTO jobq.group_weight VALUES (0, 'a', 2)"
    yield 'claims would have missed a job', LANE.format('1 AS found_too_high, 0 AS transactions')
    yield 'a lane of a transaction that is over', LANE.format('0 AS found_too_high, 1 AS transactions')
    yield 'a key without a live job', f"INSERT INTO jobq.key SELECT queue_id, 'k', job_id FROM jobq.job WHERE job_id = {job}"
    yield 'a live keyed job without its key', """WITH f AS (DELETE FROM jobq.finished WHERE job_id = (SELECT max(job_id) FROM jobq.job WHERE job_key IS NOT NULL) RETURNING *)
        INSERT INTO jobq.delayed SELECT job_id, queue_id, now(), attempt, tries, 0 FROM f"""
    yield 'two live jobs with one key', """WITH k AS (SELECT queue_id, job_key FROM jobq.job WHERE job_key IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 1 LIMIT 1),
        f AS (DELETE FROM jobq.finished WHERE job_id IN (SELECT job_id FROM jobq.job JOIN k USING (queue_id, job_key)) RETURNING *)
        INSERT INTO jobq.delayed SELECT job_id, queue_id, now(), attempt, tries, 0 FROM f"""
    yield 'live jobs after the drain', f"""WITH f AS (DELETE FROM jobq.finished WHERE job_id = {job} RETURNING *)
        INSERT INTO jobq.delayed SELECT job_id, queue_id, now(), attempt, tries, 0 FROM f"""
    yield 'an enqueue exists twice', f"UPDATE jobq.job SET payload = (SELECT payload FROM jobq.job WHERE job_id = {job})"
    yield 'a failure without its job', 'INSERT INTO jobq.failure SELECT 10^15::bigint, attempt, kind, claimed_at, failed_at, worker, error FROM jobq.failure LIMIT 1'
    yield 'an attempt without an end', "DELETE FROM jobq.failure WHERE kind = 'expired'"
    yield 'a failure of an attempt that never was', f'UPDATE jobq.failure SET attempt = attempt + 1000 WHERE (job_id, attempt) = {SOME_FAILURE}'
    yield 'a failure with the error of another', "UPDATE jobq.failure SET error = 'x' WHERE kind = 'error'"
    yield 'recorded with another beginning', f"UPDATE jobq.finished SET claimed_at = claimed_at - interval '1 ms' WHERE job_id = {job}"
    yield 'the tries are miscounted', f'UPDATE jobq.finished SET tries = tries + 1 WHERE job_id = {job}'
    yield 'recorded under another worker', f"UPDATE jobq.failure SET worker = 'x' WHERE (job_id, attempt) = {SOME_FAILURE}"
    yield 'an attempt with two ends', f"INSERT INTO jobq.failure SELECT job_id, attempt, 'error', claimed_at, ended_at, worker FROM jobq.finished WHERE job_id = {job}"
    yield 'more tries than the limit', MANY_FAILURES
    yield 'more deaths of workers in a row than the limit', MANY_FAILURES
    yield 'an attempt that nobody claimed', f'UPDATE jobq.finished SET attempt = attempt + 1 WHERE job_id = {job}'
    yield 'a committed claim is not counted', f'UPDATE jobq.finished SET attempt = attempt - 1 WHERE job_id = {job}'
    yield 'whose complete was acknowledged is recorded as', f"UPDATE jobq.finished SET state = 'dead' WHERE job_id = {job}"
    yield 'a death without a reason', f"UPDATE jobq.finished SET state = 'dead', reason = NULL WHERE job_id = {job}"
    yield 'an end before its beginning', f"UPDATE jobq.finished SET claimed_at = ended_at + interval '1 s' WHERE job_id = {job}"
    yield 'an end before its beginning', "UPDATE jobq.failure SET failed_at = 'epoch'"
    yield 'a death for no good reason', f"UPDATE jobq.finished SET state = 'dead', reason = 'attempts exhausted' WHERE job_id = {job}"
    yield 'a death for no good reason', f"UPDATE jobq.finished SET state = 'dead', reason = 'failed, not to be retried' WHERE job_id = {job}"
    yield 'a death for no good reason', f"""WITH f AS (UPDATE jobq.finished SET state = 'dead', reason = 'failed, not to be retried'
            WHERE job_id = {job} RETURNING job_id, attempt, claimed_at, ended_at, worker),
        e AS (INSERT INTO jobq.failure SELECT job_id, attempt, 'error', claimed_at, ended_at, worker FROM f)
        INSERT INTO chaos.reset SELECT job_id, attempt FROM f"""
    yield 'a completed job with the result of another', f"UPDATE jobq.finished SET result = '1' WHERE job_id = {job}"
    yield 'a job is cancelled that nobody cancelled', "UPDATE jobq.finished SET reason = 'replaced by job 0' WHERE state = 'cancelled'"
    yield 'a job is cancelled that nobody cancelled', "UPDATE jobq.failure SET error = 'x' WHERE kind = 'cancelled'"
    yield 'a completed job without its effect', f'DELETE FROM chaos.effect WHERE job_id = {job}'
    yield 'an effect that exists twice', f'INSERT INTO chaos.effect SELECT * FROM chaos.effect WHERE job_id = {job}'
    yield 'an effect of a job that is not completed', 'UPDATE chaos.effect SET attempt = attempt + 1'
    yield 'an effect of nobody', "INSERT INTO chaos.effect VALUES (0, 1, 'x')"


def not_found(db, story):
    """Those that the audit missed."""
    Damaged.reset = {row[0] for row in db.execute('SELECT job_id FROM chaos.reset').fetchall()}
    Damaged.marks = dict(db.execute("SELECT job_id, payload ->> 'mark' FROM jobq.job JOIN jobq.queue USING (queue_id) WHERE name <> %s",
                                    (FLEETING,)).fetchall())
    Damaged.there = set(Damaged.marks)
    Damaged.ended = dict(db.execute('SELECT job_id, extract(epoch FROM ended_at)::float8 FROM jobq.finished').fetchall())
    Damaged.expired = db.execute("""SELECT job_id, attempt, extract(epoch FROM failed_at)::float8 FROM jobq.failure
        WHERE kind = 'expired' ORDER BY failed_at LIMIT 1""").fetchone()
    missed = []

    def audited(name, damaged, server_log=''):
        if not any(name in finding for finding in Audit(db, damaged, server_log).contradictions()):
            missed.append(name)

    audited('the server log has', story, '\nERROR:  deadlock detected\n')
    audited('the server log has', story, '\njobq manager: claims of queue "x", priority 5, would have missed a job\n')
    for name, damaged in of_the_log(story):
        audited(name, damaged())
    completed = next(o for o in story.done('complete') if held(o) and o['attempt'] == 1)
    for name, statement in of_the_tables(completed['job']):
        with db.transaction(force_rollback=True):
            db.execute(statement)
            audited(name, story)
    return missed
