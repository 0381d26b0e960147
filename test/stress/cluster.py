"""The servers of a run: one, or a primary and its synchronous standby. Each stands in a folder of dev/server, is reached through its
socket alone, and is seen from outside: its processes are those that work in its data folder."""
import contextlib
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import psycopg

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
LONGEST = 60  # seconds after which a server that does not answer has hung
STANDBY = {'wal_retrieve_retry_interval': '200ms', 'max_wal_senders': 10, 'wal_keep_size': '256MB'}


class Trouble(Exception):
    """A server that does not do what it was told to."""


def wait_until(what, question, seconds=LONGEST):
    """Asks until the answer is true, and returns it."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        if time.monotonic() > deadline:
            raise Trouble(f'waited {seconds} s in vain: {what}')
        time.sleep(0.02)
    return answer


def rss(pid):
    """kB of memory that this process has for itself; None if it is gone."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
            if line.startswith('RssAnon:'):
                return int(line.split()[1])


def await_burial(pid):
    """As long as a dead process has its number, the lock file of its server seems to be a living one's."""
    wait_until(f'process {pid} is buried', lambda: not os.path.exists(f'/proc/{pid}'))


def written(setting):
    name, value = setting
    quoted = str(value).replace("'", "''")
    return f"{name} = '{quoted}'\n"


class Server:
    """One folder of dev/server."""

    def __init__(self, checkout, environment):
        self.checkout = pathlib.Path(checkout)
        self.environment = environment
        self.folder = pathlib.Path(self.run('new', 'chaos'))
        self.data = self.folder / 'data'
        self.socket = self.folder / 's'

    def run(self, *words, seconds=600):
        return subprocess_output([self.checkout / 'dev/server', *words], seconds)

    def word(self, *words, **options):
        return self.run('-d', self.folder, *words, **options)

    def make(self, settings):
        self.word('tree')
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
            file.writelines(map(written, settings.items()))
            file.flush()
            self.word('init', file.name)

    def start(self):
        subprocess_output([self.checkout / 'dev/server', '-d', self.folder, 'start'], 2 * LONGEST, {**os.environ, **self.environment})

    def stop(self, mode='fast'):
        self.word('stop', mode, seconds=2 * LONGEST)

    def postmaster(self):
        return int((self.data / 'postmaster.pid').read_text().split()[0])

    def processes(self):
        found = []
        for entry in os.scandir('/proc'):
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and os.readlink(f'/proc/{entry.name}/cwd') == str(self.data):
                    found.append(int(entry.name))
        return found

    def kill(self):
        """All processes at once, as when the machine is gone."""
        def is_empty():
            processes = self.processes()
            for pid in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not processes
        postmaster = self.postmaster()
        wait_until(f'the killed processes of {self.data} go', is_empty)
        await_burial(postmaster)

    def kill_postmaster(self):
        """The others see that it is gone, and go."""
        postmaster = self.postmaster()
        os.kill(postmaster, signal.SIGKILL)
        try:
            wait_until('all processes follow their postmaster', lambda: not self.processes())
        except Trouble:
            self.kill()
            raise
        await_burial(postmaster)

    def copy(self, primary):
        """Becomes a standby of another one, whose programs it shares."""
        self.word('stop')
        shutil.rmtree(self.data, ignore_errors=True)
        root = self.folder / 'root'
        if not root.exists():
            root.symlink_to(primary.folder / 'root')
        self.data.mkdir(0o700)
        if os.geteuid() == 0:
            shutil.chown(self.data, self.run('user'))
        self.word('run', 'pg_basebackup', '-h', primary.socket, '-D', self.data, '-R', '-c', 'fast', '--no-sync', seconds=2 * LONGEST)
        with open(self.data / 'postgresql.auto.conf', 'a') as file:
            file.write(written(('unix_socket_directories', self.socket)))

    def log_text(self):
        log = self.folder / 'log/server.log'
        return log.read_text(errors='replace') if log.exists() else ''

    def remove(self):
        if self.folder.exists():
            self.word('remove')


def subprocess_output(command, seconds, environment=None):
    # in a session of its own: a Ctrl-C is for who runs this
    done = subprocess.run(command, env=environment, timeout=seconds, start_new_session=True, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise Trouble(f'{" ".join(map(str, command))}: {done.stderr.strip()[-2000:]}')
    return done.stdout.strip()


class Clock:
    """A wall clock of the servers that can be set. The monotonic one stays real, and with it every sleep."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='jobq-clock.'))
        self.folder.chmod(0o755)
        self.library = self.folder / 'wall_clock.so'
        source = pathlib.Path(__file__).with_name('wall_clock.cpp')
        subprocess_output(['g++', '-std=c++20', '-O2', '-shared', '-fPIC', '-o', self.library, source], LONGEST)
        self.file = self.folder / 'offset'
        self.file.touch(0o644)
        self.set(0)

    def environment(self):
        return {'LD_PRELOAD': str(self.library), 'WALL_CLOCK': str(self.file)}

    def set(self, offset):
        """In seconds, for all processes at the same time."""
        self.offset = offset
        with open(self.file, 'r+b', buffering=0) as file:
            file.write(struct.pack('=q', round(offset * 1e9)))

    def remove(self):
        shutil.rmtree(self.folder)


class Cluster:
    """settings: for postgresql.conf. checkout: whose dev/server and whose jobq."""

    def __init__(self, settings, checkout=CHECKOUT, standby=False, faked_clock=False):
        self.faked = Clock() if faked_clock else None
        environment = self.faked.environment() if self.faked else {}
        self.primary = Server(checkout, environment)
        self.standby = Server(checkout, environment) if standby else None
        self.is_standby_in_place = False
        try:
            self.make(settings)
        except BaseException:
            self.remove()
            raise

    def make(self, settings):
        self.primary.make(settings | STANDBY if self.standby else settings)
        self.start()
        if self.standby:
            self.rebuild_standby()

    def bindir(self):
        return pathlib.Path(self.primary.word('bindir'))

    def servers(self):
        return [server for server in [self.primary, self.standby] if server]

    def dsn(self):
        """How clients connect, but for dbname: to whichever server takes writes."""
        sockets = sorted(str(server.socket) for server in self.servers())
        return {'host': ','.join(sockets), 'port': '5432', 'user': 'postgres', 'connect_timeout': 5,
                'target_session_attrs': 'read-write' if self.standby else 'any'}

    def connect(self, database='postgres', **options):
        """For what is done to the server. Waits for no standby."""
        return psycopg.connect(**{**self.dsn(), 'dbname': database, 'autocommit': True, 'application_name': 'nemesis',
                                  'options': '-c synchronous_commit=local', **options})

    def rows(self, statement, *values, **options):
        with self.connect(**options) as db:
            answer = db.execute(statement, values or None)
            return answer.fetchall() if answer.description else []

    def is_up(self):
        try:
            return bool(self.rows('SELECT 1'))
        except psycopg.OperationalError:
            return False

    def pids(self, backend_type):
        """None of them while the server is down. Not those that are connected by connect()."""
        try:
            return [row[0] for row in self.rows(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = %s AND application_name <> 'nemesis' ORDER BY pid", backend_type)]
        except psycopg.OperationalError:
            return []

    def start(self):
        self.primary.start()
        wait_until('the server answers', self.is_up)

    def stop(self, mode='fast'):
        self.primary.stop(mode)

    def kill_postmaster(self):
        self.primary.kill_postmaster()

    def kill_process(self, pid):
        """Kills a process of the server, which makes it begin anew; waits until it has."""
        before = wait_until('the server answers', lambda: self.pids('checkpointer'))
        os.kill(pid, signal.SIGKILL)
        wait_until('the server has begun anew', lambda: self.pids('checkpointer') not in ([], before))

    def clock(self):
        """The server's clock, without asking it: both run on one machine."""
        return time.time() + (self.faked.offset if self.faked else 0)

    def now(self):
        return float(self.rows('SELECT extract(epoch FROM clock_timestamp())')[0][0])

    def step_clock(self, seconds):
        self.faked.set(self.faked.offset + seconds)

    def promote(self):
        """The primary is gone at once, and its standby takes over, alone: it waits for no other, so that commits go on. The folder of
        the old one is for rebuild_standby."""
        self.is_standby_in_place = False
        self.primary.kill()
        self.primary, self.standby = self.standby, self.primary
        with self.connect(host=str(self.primary.socket), target_session_attrs='any') as db:
            if not db.execute(f'SELECT pg_promote(true, {LONGEST})').fetchone()[0]:
                raise Trouble('the standby was not promoted')
        wait_until('the promoted server takes writes', self.is_up)

    def rebuild_standby(self):
        """A copy of the primary follows it, and from then on commits wait for it. The copy itself, once promoted, waits for nobody."""
        self.name_standby('')
        self.standby.copy(self.primary)
        self.standby.start()
        wait_until('the standby streams', lambda: self.is_replicated("state = 'streaming'"))
        self.name_standby('*')
        wait_until('the standby is synchronous', lambda: self.is_replicated("sync_state = 'sync'"))
        # What was committed before commits had to wait is not promised to be there until it has arrived, too. The checkpointer tells
        # the others to wait, at some time after the reload.
        time.sleep(1)
        end = self.rows('SELECT pg_current_wal_lsn()')[0][0]
        wait_until('the standby has all', lambda: self.is_replicated(f"flush_lsn >= '{end}'"))
        self.is_standby_in_place = True

    def name_standby(self, names):
        with self.connect() as db:
            db.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
            db.execute('SELECT pg_reload_conf()')

    def is_replicated(self, condition):
        with contextlib.suppress(psycopg.OperationalError):
            return self.rows(f"SELECT count(*) FROM pg_stat_replication WHERE application_name = 'walreceiver' AND {condition}")[0][0] == 1

    def log_text(self):
        return ''.join(server.log_text() for server in self.servers())

    def remove(self):
        # The one whose programs the other one shares goes last.
        for server in sorted(self.servers(), key=lambda server: not (server.folder / 'root').is_symlink()):
            server.remove()
        if self.faked:
            self.faked.remove()
