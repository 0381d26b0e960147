"""Does to a running cluster and its clients what the world does to them: kills, stops, locks, restarts, fails over, sets the clock.

The seed says what is done, and in which order. What it is done to also depends on who is there at that time. What lasts goes on in a
thread of its own, beside what comes next; what stops the server is done by itself.

In the log: `strike` at the beginning of each, `struck` at its end, with the reason if it missed; `server died` and `server began` with
an instant of the server's clock that is not later, the latter also with one when the old server was gone for sure; `clock`; and `error` for what
nothing done here explains.
"""
import contextlib
import os
import random
import re
import signal
import subprocess
import threading
import time
import traceback

import psycopg

from cluster import LONGEST, Trouble, wait_until

TABLES = ['delayed', 'failure', 'finished', 'group_weight', 'job', 'key', 'lease', 'queue', 'ready']
LOCKS = ['SHARE', 'SHARE ROW EXCLUSIVE', 'EXCLUSIVE', 'ACCESS EXCLUSIVE']
SETTINGS = ['jobq.enabled', 'jobq.sweep_interval']
LONGEST_LEASE = 4

# How often each strike is picked, in relation to the others.
RESTARTS = {'kill_backend': 2, 'kill_manager': 1, 'kill_launcher': 1, 'kill_auxiliary': 1, 'stop_immediate': 3, 'stop_fast': 3,
            'kill_postmaster': 2}
SIGNALS = {'terminate_client': 3, 'terminate_clients': 2, 'terminate_manager': 3, 'terminate_launcher': 2, 'cancel_manager': 3}
LASTING = {'stop_worker': 6, 'lock_tables': 6, 'lock_rows': 4, 'hold_snapshot': 3, 'vacuum': 2, 'rewrite': 3, 'disable': 2,
           'set_sweep_interval': 1, 'dump': 2}
CRASH = {'kill_actor': 8, **RESTARTS, **SIGNALS, **LASTING}
CANCEL = {'cancel_client': 3}  # a commit that waits for a standby and is cancelled is acknowledged without it
CLOCK = {name: CRASH[name] for name in ['kill_actor', 'kill_backend', 'stop_immediate', 'stop_fast', 'kill_postmaster',
                                        'terminate_client', 'terminate_manager', 'stop_worker', 'lock_tables', 'lock_rows']}
MODES = {'calm': {}, 'crash': CRASH | CANCEL, 'async': CRASH | CANCEL, 'standby': CRASH | {'fail_over': 6},
         'clock': CLOCK | {'step_clock': 12}}
# What a mode is for comes early, however short the run.
EARLY = {'standby': 'fail_over', 'clock': 'step_clock'}
EARLY_NUMBER = 4

GONE = re.compile('terminat|shut ?down|shutting down|starting up|recovery|connect|cancel')


class Missed(Exception):
    """The victim is not there."""


class Nemesis:
    """databases: those that have jobq. rng says what is done."""

    def __init__(self, cluster, crowd, log, rng, mode, databases=('postgres',)):
        self.cluster = cluster
        self.crowd = crowd
        self.log = log
        self.rng = rng
        self.mode = mode
        self.databases = databases
        self.number = 0
        self.lasting = []
        self.is_over = threading.Event()
        self.stopped = set()
        self.furthest = 0  # where the clock has been

    def run(self, seconds):
        """Strikes every two seconds or so, and heals."""
        until = time.monotonic() + seconds
        try:
            while (left := until - time.monotonic()) > 0:
                self.strike()
                time.sleep(min(left, self.rng.uniform(0.5, 2.5)))
        finally:
            self.heal()

    def strike(self):
        weights = MODES[self.mode]
        if not weights:
            return
        self.number += 1
        what = self.rng.choices(list(weights), list(weights.values()))[0]
        if self.number == EARLY_NUMBER:
            what = EARLY.get(self.mode, what)
        # Each has its own, so that what one finds does not change what the next ones do.
        choice = random.Random(self.rng.getrandbits(64))
        if what in LASTING:
            self.begin(what, choice)
        else:
            self.do(self.number, what, choice)

    def begin(self, what, choice=None):
        self.lasting = [thread for thread in self.lasting if thread.is_alive()]
        thread = threading.Thread(target=self.do, args=(self.number, what, choice), daemon=True, name=what)
        self.lasting.append(thread)
        thread.start()

    def do(self, number, what, choice):
        self.log.note('strike', number=number, what=what, at=time.time(), at_mono=time.monotonic())
        missed, details = None, None
        try:
            details = getattr(self, what)(choice)
        except (Missed, ProcessLookupError) as error:
            missed = str(error)
        except psycopg.OperationalError as error:
            missed = str(error)
            if isinstance(error, psycopg.errors.DeadlockDetected):
                self.note_error(what, error)
        except Exception as error:
            missed = str(error)
            self.note_error(what, error)
        self.log.note('struck', number=number, what=what, at=time.time(), at_mono=time.monotonic(), missed=missed, **details or {})

    def note_error(self, what, error):
        self.log.note('error', sqlstate=getattr(error, 'sqlstate', None), message=f'{what}: {error}', where=traceback.format_exc()[-600:])

    # Actors

    def actor(self, choice, *roles):
        actors = [(name, pid) for name, pid in sorted(self.crowd.pids().items()) if name.startswith(roles) and pid not in self.stopped]
        return pick(choice, actors)

    def kill_actor(self, choice):
        name, pid = self.actor(choice, 'worker', 'producer')
        os.kill(pid, signal.SIGKILL)
        return {'victim': name}

    def stop_worker(self, choice):
        """Twice its lease, so that it goes on with jobs that others have by now."""
        name, pid = self.actor(choice, 'worker')
        self.stopped.add(pid)
        try:
            os.kill(pid, signal.SIGSTOP)
            self.is_over.wait(choice.uniform(2, 2 * LONGEST_LEASE))
        finally:
            self.stopped.discard(pid)
            os.kill(pid, signal.SIGCONT)
        return {'victim': name}

    # Processes of the server

    def victim(self, choice, *backend_types):
        pids = sum((self.cluster.pids(backend_type) for backend_type in backend_types), [])
        return pick(choice, pids)

    def kill(self, pid):
        """The server begins anew."""
        with self.crash('crash'):
            self.cluster.kill_process(pid)

    def kill_backend(self, choice):
        self.kill(self.victim(choice, 'client backend'))

    def kill_manager(self, choice):
        self.kill(self.victim(choice, 'jobq manager'))

    def kill_launcher(self, choice):
        self.kill(self.victim(choice, 'jobq launcher'))

    def kill_auxiliary(self, choice):
        self.kill(self.victim(choice, 'autovacuum worker', 'autovacuum launcher', 'checkpointer'))

    def send(self, function, pids):
        self.cluster.rows(f'SELECT {function}(pid) FROM unnest(%s::int[]) AS pid', pids)
        return {'victims': len(pids)}

    def terminate_client(self, choice):
        return self.send('pg_terminate_backend', [self.victim(choice, 'client backend')])

    def terminate_clients(self, choice):
        return self.send('pg_terminate_backend', self.cluster.pids('client backend'))

    def terminate_manager(self, choice):
        return self.send('pg_terminate_backend', [self.victim(choice, 'jobq manager')])

    def terminate_launcher(self, choice):
        return self.send('pg_terminate_backend', [self.victim(choice, 'jobq launcher')])

    def cancel_client(self, choice):
        clients = self.cluster.pids('client backend')
        return self.send('pg_cancel_backend', choice.sample(clients, min(len(clients), 3)))

    def cancel_manager(self, choice):
        return self.send('pg_cancel_backend', [self.victim(choice, 'jobq manager')])

    # The server

    @contextlib.contextmanager
    def crash(self, kind):
        """Around what makes the server lose what it had in memory, and begin anew."""
        at = self.cluster.clock()
        self.log.note('server died', at=at, kind=kind)
        try:
            yield
        finally:
            self.log.note('server began', at=at, gone=self.cluster.clock(), kind=kind)

    def start(self, kind):
        at = self.cluster.clock()
        self.cluster.start()
        self.log.note('server began', at=at, gone=at, kind=kind)

    def stay_down(self, choice):
        """Mostly as short as can be, sometimes longer than a lease."""
        seconds = choice.choice([0, 0, 0, 0.5, LONGEST_LEASE + 1])
        time.sleep(seconds)
        return {'down': seconds}

    def stop_immediate(self, choice):
        self.log.note('server died', at=self.cluster.clock(), kind='immediate')
        return self.stop('immediate', choice)

    def stop_fast(self, choice):
        return self.stop('fast', choice)

    def stop(self, mode, choice):
        try:
            self.cluster.stop(mode)
        except Trouble:
            self.log.note('server died', at=self.cluster.clock(), kind='did not stop')
            self.cluster.stop('immediate')
            self.start(mode)
            raise
        details = self.stay_down(choice)
        self.start(mode)
        return details

    def kill_postmaster(self, choice):
        self.log.note('server died', at=self.cluster.clock(), kind='postmaster')
        try:
            self.cluster.kill_postmaster()
            return self.stay_down(choice)
        finally:
            self.start('postmaster')

    def fail_over(self, choice):
        if not self.cluster.is_standby_in_place:
            raise Missed('the standby is not in place')
        try:
            wait_until('the standby is synchronous', lambda: self.cluster.is_replicated("sync_state = 'sync'"), 5)
        except Trouble as error:
            raise Missed(str(error)) from None
        with self.crash('promotion'):
            self.cluster.promote()
        self.reset_settings()
        self.begin('rebuild_standby')

    def rebuild_standby(self, choice):
        """The primary may be struck meanwhile, and then it is begun again."""
        deadline = time.monotonic() + 2 * LONGEST
        while not self.cluster.is_standby_in_place:
            try:
                self.cluster.rebuild_standby()
            except (Trouble, psycopg.OperationalError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        self.log.note('standby in place', at=self.cluster.clock())

    def step_clock(self, choice):
        # With the wall clock the server measures how long it waits for a lock: set back, it would wait for ours for ever.
        self.end_lasting()
        by = choice.choice([-1, 1]) * choice.choice([choice.uniform(2, 10), choice.uniform(10, 600), choice.uniform(600, 3600)])
        self.set_clock(by)
        return {'by': by}

    def set_clock(self, by):
        self.log.note('clock', by=by, at=self.cluster.clock(), at_mono=time.monotonic())
        self.cluster.step_clock(by)
        self.furthest = max(self.furthest, self.cluster.faked.offset)

    # What a session does

    def session(self, choice):
        # Gives up before the server looks for deadlocks: whoever waits for us in another order than ours waits in vain for no long.
        return self.cluster.connect(choice.choice(self.databases),
                                    options='-c synchronous_commit=local -c lock_timeout=300ms -c statement_timeout=60s')

    def hold(self, choice, statement, seconds, begin='BEGIN'):
        """In a transaction, which is then held open."""
        with self.session(choice) as db:
            patiently(lambda: db.execute(f'{begin}; {statement}'), lambda: db.execute('ROLLBACK'))
            self.is_over.wait(seconds)
            db.execute('ROLLBACK')
        return {'statement': statement, 'seconds': seconds}

    def lock_tables(self, choice):
        tables = sorted(choice.sample(TABLES, choice.choice([1, 1, 2])))
        names = ', '.join(f'jobq.{table}' for table in tables)
        return self.hold(choice, f'LOCK TABLE {names} IN {choice.choice(LOCKS)} MODE', choice.uniform(0.2, 3))

    def lock_rows(self, choice):
        table, key = choice.choice([('lease', 'job_id'), ('queue', 'queue_id')])
        how = choice.choice(['FOR UPDATE', 'FOR NO KEY UPDATE', 'FOR SHARE'])
        return self.hold(choice, f'SELECT FROM jobq.{table} ORDER BY {key} LIMIT 5 {how} SKIP LOCKED', choice.uniform(0.5, 1.5))

    def hold_snapshot(self, choice):
        return self.hold(choice, 'SELECT FROM jobq.job LIMIT 1', choice.uniform(1, 8), 'BEGIN ISOLATION LEVEL REPEATABLE READ')

    def command(self, choice, statement):
        with self.session(choice) as db:
            patiently(lambda: db.execute(statement), lambda: None)
        return {'statement': statement}

    def vacuum(self, choice):
        how = choice.choice(['VACUUM', 'ANALYZE', 'VACUUM (ANALYZE)', 'VACUUM (FREEZE)'])
        return self.command(choice, f'{how} jobq.{choice.choice(TABLES)}')

    def rewrite(self, choice):
        table = choice.choice(TABLES)
        return self.command(choice, choice.choice([f'VACUUM FULL jobq.{table}', f'REINDEX TABLE jobq.{table}',
                                                   f'CLUSTER jobq.{table} USING {table}_pkey']))

    def dump(self, choice):
        dsn = self.cluster.dsn()
        command = [self.cluster.bindir() / 'pg_dump', '-h', self.cluster.primary.socket, '-p', dsn['port'], '-U', dsn['user'],
                   '-d', choice.choice(self.databases), '-f', os.devnull]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * LONGEST, check=False)
        if done.returncode and not GONE.search(done.stderr):
            raise Trouble(done.stderr)
        return {'ended_with': done.returncode}

    # Settings

    def set(self, choice, setting, value, seconds):
        with self.cluster.connect() as db:
            db.execute(f"ALTER SYSTEM SET {setting} = '{value}'")
            db.execute('SELECT pg_reload_conf()')
        self.is_over.wait(seconds)
        wait_until('the settings are put back', self.reset_settings)

    def disable(self, choice):
        self.set(choice, 'jobq.enabled', 'off', choice.uniform(1, 5))

    def set_sweep_interval(self, choice):
        self.set(choice, 'jobq.sweep_interval', choice.choice(['1ms', '50ms', '60s']), choice.uniform(1, 5))

    def reset_settings(self):
        """False: the server is down."""
        try:
            with self.cluster.connect() as db:
                for setting in SETTINGS:
                    db.execute(f'ALTER SYSTEM RESET {setting}')
                db.execute('SELECT pg_reload_conf()')
        except psycopg.OperationalError:
            return False
        return True

    # The end

    def end_lasting(self):
        """What lasts ends now, instead of at its time."""
        self.is_over.set()
        if not self.have_ended(5):
            self.end_sessions()
            self.have_ended(LONGEST)
        self.is_over.clear()

    def have_ended(self, seconds):
        deadline = time.monotonic() + seconds
        threads = [thread for thread in self.lasting if thread.name in LASTING]
        for thread in threads:
            thread.join(max(0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def end_sessions(self):
        with contextlib.suppress(psycopg.OperationalError):
            self.cluster.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name IN ('nemesis', 'pg_dump')"
                              ' AND pid <> pg_backend_pid()')

    def heal(self):
        """Nothing that was done here goes on. The clock is where it was furthest: what waits for an instant that has been comes."""
        self.end_lasting()
        self.heal_server()
        if self.cluster.standby:
            self.heal_standby()
        for thread in self.lasting:
            if thread.is_alive():
                self.log.note('error', sqlstate=None, message=f'{thread.name} does not end')
        wait_until('the settings are put back', self.reset_settings)
        if self.cluster.faked and self.cluster.faked.offset < self.furthest:
            self.set_clock(self.furthest - self.cluster.faked.offset)

    def heal_server(self):
        try:
            wait_until('the server answers', self.cluster.is_up, 10)
        except Trouble as error:
            self.note_error('heal', error)
            self.start('healed')

    def heal_standby(self):
        for thread in self.lasting:
            thread.join(4 * LONGEST)
        try:
            wait_until('the standby is synchronous', lambda: self.cluster.is_replicated("sync_state = 'sync'"))
        except Trouble as error:
            self.note_error('heal', error)
            self.cluster.name_standby('')


def pick(choice, victims):
    if not victims:
        raise Missed('nobody is there')
    return choice.choice(victims)


def patiently(attempt, give_up):
    """Tries until nobody has the lock."""
    for left in reversed(range(10)):
        try:
            return attempt()
        except psycopg.errors.LockNotAvailable:
            give_up()
            if not left:
                raise
            time.sleep(0.05)
