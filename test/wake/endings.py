#!/usr/bin/env python3
"""However a wait ends, and wherever it is at that moment, its session is as before and its wake is not lost: two sleepers, one job, and
the one that was woken does not claim it.
"""
import os
import signal
import subprocess
import time

from sessions import MOST, Admin, Session, comes, end, freeze, ok, run_all, same, tell, thaw, until


def fresh(admin):
    admin.run("SELECT jobq.drop_queue('q', true) FROM jobq.queues WHERE queue = 'q'")
    admin.run("SELECT jobq.create_queue('q', retry_base => '0', lease => '1 h')")


def enqueue(admin):
    return admin.one("SELECT jobq.enqueue('t', queue => 'q')")


def as_worker():
    return dict(options='-c role=wake_worker -c search_path=nowhere')


def is_as_before(session, name):
    """The session can go on, is still the worker and nothing more, and what a wait sets for itself is as it was."""
    found = session.run("SELECT current_user, current_setting('search_path'), current_setting('transaction_isolation'),"
                        " current_setting('is_superuser'), pg_catalog.pg_current_xact_id_if_assigned() IS NULL")
    same(found, [('wake_worker', 'nowhere', 'read committed', 'off', True)], f'{name}: the session is as before')
    same(session.state('SELECT FROM jobq.ready'), '42501', f'{name}: and has no more rights')
    same(session.state("CALL jobq.wait('q', '0')"), '00000', f'{name}: and can wait again')


def hits(admin):
    """The ways to end a wait from outside: what is done, what it ends with, whether the session lives."""
    return [('cancelled', admin.cancel, '57014', True), ('terminated', admin.terminate, 'connection lost', False)]


def asleep():
    admin = Admin()
    for what, hit, state, lives in hits(admin):
        fresh(admin)
        first = admin.sleeper(**as_worker())
        second = admin.sleeper()
        hit(first)
        same(first.result(), state, f'{what} while it sleeps')
        if lives:
            is_as_before(first, f'{what} while it sleeps')
        enqueue(admin)
        same(second.result(MOST), True, f'{what} while it sleeps: it has left the line, the next one is woken')
        end(first, second)


def just_being_woken():
    """It has been given the wake, and has not run since."""
    admin = Admin()
    for what, hit, state, lives in hits(admin):
        fresh(admin)
        first = admin.sleeper(**as_worker())
        second = admin.sleeper()
        freeze(first)
        enqueue(admin)
        ok(admin.is_asleep(second) and not second.is_done(), f'{what} just when it is woken: one job wakes one')
        hit(first)
        thaw(first)
        same(first.result(), state, f'{what} just when it is woken')
        same(second.result(MOST), True, f'{what} just when it is woken: the next one is woken')
        if lives:
            is_as_before(first, f'{what} just when it is woken')
        end(first, second)


def in_its_look():
    """It was woken and looks, with the owner's rights: there it waits for a lock on the table."""
    admin, locker = Admin(), Admin()
    for what, hit, state, lives in hits(admin):
        fresh(admin)
        first = admin.sleeper(**as_worker())
        second = admin.sleeper()
        freeze(first)
        enqueue(admin)
        locker.run('BEGIN')
        locker.run('LOCK TABLE jobq.ready IN ACCESS EXCLUSIVE MODE')
        thaw(first)
        until(lambda: admin.waits(first) == 'Lock', 'the woken one looks')
        hit(first)
        same(first.result(), state, f'{what} in its look')
        if lives:
            found = first.run("SELECT current_user, current_setting('search_path'), current_setting('is_superuser')")
            same(found, [('wake_worker', 'nowhere', 'off')], f'{what} in its look: the session is as before')
        locker.run('COMMIT')
        same(second.result(MOST), True, f'{what} in its look: the next one is woken')
        end(first, second)


def in_its_first_look():
    """It has not joined the line yet."""
    admin, locker = Admin(), Admin()
    fresh(admin)
    locker.run('BEGIN')
    locker.run('LOCK TABLE jobq.queue IN ACCESS EXCLUSIVE MODE')
    first = Session(**as_worker()).start("CALL jobq.wait('q', '1 h')")
    until(lambda: admin.waits(first) == 'Lock', 'it looks')
    admin.cancel(first)
    same(first.result(), '57014', 'cancelled in its first look')
    locker.run('COMMIT')
    is_as_before(first, 'cancelled in its first look')


def told_but_gone():
    """It was told that there is a job, and its session ended without a claim."""
    admin = Admin()
    for way in ('closed', 'terminated', 'killed'):
        fresh(admin)
        first, second = admin.sleepers(2)
        enqueue(admin)
        same(first.result(MOST), True, f'{way} when it has been told')
        ok(not second.is_done(), f'{way} when it has been told: the other one sleeps')
        if way == 'closed':
            first.close()
        elif way == 'terminated':
            admin.terminate(first)
        else:
            os.close(first.db.fileno())
        same(second.result(MOST), True, f'{way} when it has been told: the next one is woken')
        end(second)


def told_and_claimed():
    """The promise is kept: nobody is woken by the end of the session, there is nothing to claim."""
    admin = Admin()
    fresh(admin)
    first = admin.sleeper()
    second = admin.sleeper(timeout='2 s')
    enqueue(admin)
    same(first.result(MOST), True, 'told')
    same(len(first.run("SELECT job_id FROM jobq.claim('q')")), 1, 'claimed')
    first.close()
    same(second.result(MOST), False, 'whoever claimed has kept its promise')


def told_and_its_claim_failed():
    """It was told, its claim ended with an error, and then its session ended."""
    admin, locker = Admin(), Admin()
    fresh(admin)
    first, second = admin.sleepers(2)
    enqueue(admin)
    same(first.result(MOST), True, 'told, and now it claims')
    locker.run('BEGIN')
    locker.run('LOCK TABLE jobq.ready IN ACCESS EXCLUSIVE MODE')
    first.start("SELECT FROM jobq.claim('q')")
    until(lambda: admin.waits(first) == 'Lock', 'the claim waits')
    admin.cancel(first)
    same(first.result(), '57014', 'its claim is cancelled')
    first.close()
    locker.run('COMMIT')
    same(second.result(MOST), True, 'a claim that failed has not kept the promise: the next one is woken')


def told_and_its_claim_rolled_back():
    admin = Admin()
    fresh(admin)
    first, second = admin.sleepers(2)
    enqueue(admin)
    same(first.result(MOST), True, 'told, and now it claims and rolls back')
    first.run('SET jobq.claim_in_transaction = allow')
    first.run('BEGIN')
    same(len(first.run("SELECT job_id FROM jobq.claim('q')")), 1, 'claimed in a transaction')
    ok(not second.is_done(), 'the other one sleeps')
    first.run('ROLLBACK')
    same(second.result(MOST), True, 'the next one is woken by the rollback')


def told_and_its_block_failed():
    """What waited raised an error after it was told, so its client never heard of the job."""
    admin = Admin()
    fresh(admin)
    first = admin.until_asleep(Session().start("DO $$ DECLARE r boolean; BEGIN CALL jobq.wait('q', '1 h', r); RAISE 'after %', r; END $$"))
    second = admin.sleeper()
    enqueue(admin)
    same(first.result(MOST), 'P0001', 'told, and its block fails')
    same(second.result(MOST), True, 'a block that failed has told nobody: the next one is woken')


def its_own_timeout():
    admin = Admin()
    fresh(admin)
    first = admin.sleeper(timeout='2 s', **as_worker())
    second = admin.sleeper()
    same(first.result(MOST), False, 'its own timeout: false')
    is_as_before(first, 'its own timeout')
    enqueue(admin)
    same(second.result(MOST), True, 'its own timeout: it has left the line, the next one is woken')


def woken_when_its_time_is_over():
    """The wake came first, however late it runs: it says so, and the job is not lost."""
    admin = Admin()
    fresh(admin)
    first = admin.sleeper(timeout='2 s')
    freeze(first)
    enqueue(admin)
    time.sleep(2.1)
    thaw(first)
    same(first.result(MOST), True, 'woken, and its time is over: it looks')


def statement_timeout():
    """It ends a tenth of a second before it, with an answer; a machine that stalls for that long gets another try."""
    admin = Admin()
    fresh(admin)
    first = Session(**as_worker())
    first.run('SET statement_timeout = 1500')
    for _ in range(10):
        began = time.monotonic()
        found = first.start("CALL jobq.wait('q', '1 h')").result()
        took = time.monotonic() - began
        if found is False:
            break
    same(found, False, 'statement_timeout: it ends before it, and says false')
    ok(took > 1.3, 'statement_timeout: and not much before', f'{took} s')
    tell(f'statement_timeout of 1.5 s: the answer came after {took:.3f} s', loud=False)
    first.run('RESET statement_timeout')
    is_as_before(first, 'statement_timeout')


def what_a_sleeper_holds():
    admin = Admin()
    fresh(admin)
    admin.sleepers(3)
    in_do = admin.until_asleep(Session().start("DO $$ DECLARE r boolean; BEGIN CALL jobq.wait('q', '1 h', r); END $$"))
    pids = [session.pid for session in Session.everyone if session is not admin]
    ask = ('SELECT pid, backend_xmin IS NULL, backend_xid IS NULL, xact_start, clock_timestamp() - xact_start FROM pg_stat_activity'
           " WHERE pid = ANY (%s) AND wait_event_type = 'Extension'")
    starts, held, oldest = {pid: set() for pid in pids}, 0, 0
    asked = [0]

    def have_renewed():
        nonlocal held, oldest
        asked[0] += 1
        for pid, no_xmin, no_xid, start, age in admin.run(ask, pids):
            held += not (no_xmin and no_xid)
            starts[pid].add(start)
            oldest = max(oldest, age.total_seconds())
        return all(len(seen) >= 3 for seen in starts.values())
    ok(comes(have_renewed, MOST), 'each transaction of a sleeper is followed by another')
    same(held, 0, 'none holds a snapshot or a transaction number')
    ok(oldest < MOST / 2, 'none is old', f'{oldest} s')
    tell(f'{asked[0]} looks, the oldest transaction of a sleeper was {oldest:.3f} s old', loud=False)
    same(admin.one("SELECT count(*) FROM pg_locks WHERE pid = ANY (%s) AND locktype <> 'virtualxid'", pids), 0, 'nor any lock')
    enqueue(admin)
    end(in_do)


def a_client_that_is_gone():
    admin = Admin()
    fresh(admin)
    client = subprocess.Popen(['psql', '-XAtqc', "CALL jobq.wait('q', '1 h')"], env={**os.environ, 'PGAPPNAME': 'gone'}, stdout=subprocess.DEVNULL)
    found = []
    until(lambda: found.extend(admin.run("SELECT pid FROM pg_stat_activity WHERE application_name = 'gone' AND wait_event_type = 'Extension'")) or found, 'psql sleeps')
    pid = found[0][0]
    second = admin.sleeper()
    client.send_signal(signal.SIGKILL)
    began = time.monotonic()
    client.wait()
    ok(comes(lambda: admin.is_gone(pid), MOST), 'a client was killed: its process ends')
    tell(f'a killed client\'s process was gone after {time.monotonic() - began:.3f} s', loud=False)
    enqueue(admin)
    same(second.result(MOST), True, 'and has left the line')


def a_client_that_is_gone_when_its_wait_is_woken():
    admin = Admin()
    fresh(admin)
    first = admin.sleeper()
    second = admin.sleeper()
    freeze(first)
    enqueue(admin)
    os.close(first.db.fileno())
    thaw(first)
    same(second.result(MOST), True, 'nobody is there to be told: the next one is woken')


if __name__ == '__main__':
    setup = Admin()
    setup.run('CREATE ROLE wake_worker LOGIN IN ROLE jobq_worker')
    setup.close()
    run_all([asleep, just_being_woken, in_its_look, in_its_first_look, told_but_gone, told_and_claimed, told_and_its_claim_failed,
             told_and_its_claim_rolled_back, told_and_its_block_failed, its_own_timeout, woken_when_its_time_is_over, statement_timeout, what_a_sleeper_holds,
             a_client_that_is_gone, a_client_that_is_gone_when_its_wait_is_woken])
