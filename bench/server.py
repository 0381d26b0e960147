# The server under test, made by dev/server for this run alone (or kept by the caller), and what is read from it from
# outside: WAL positions, the CPU time of all its processes, ended ones too, and how often one of them woke.

import contextlib
import copy
import getpass
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
DEV_SERVER = HERE.parent / "dev" / "server"
TICK = os.sysconf("SC_CLK_TCK")
LONGEST = 600      # seconds after which a command has hung


class Failed(Exception):
    """Something that the measurement needs went wrong."""


def run(command, text=None, timeout=LONGEST, **options):
    """What a command prints that reads this text. With its own children it is a group of processes: Ctrl-C is our affair."""
    called = " ".join(map(str, command[:4]))
    process = subprocess.Popen(command, text=True, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, **options)
    try:
        printed, complaint = process.communicate(text, timeout)
    except subprocess.TimeoutExpired:
        raise Failed(f"{called}: has not ended after {timeout:.0f} s") from None
    finally:
        if process.returncode is None:
            kill_group(process)
    if process.returncode != 0:
        raise Failed(f"{called}: {complaint.strip() or printed.strip()}")
    return printed


def kill_group(process):
    """Kills a command and what it has started, and waits until they are gone: they must not write into a folder that is
    about to be removed."""
    deadline = time.monotonic() + 5
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(process.pid, signal.SIGKILL)
            process.poll()
            time.sleep(0.02)


@contextlib.contextmanager
def private_server(settings, extensions=()):
    """A server with these settings (a text), and with these of Debian's extensions, that is gone afterwards, also after
    Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = run([DEV_SERVER, "new", "bench"]).strip()
    try:
        conf = pathlib.Path(folder) / "bench.conf"
        conf.write_text(settings)
        run([DEV_SERVER, "-d", folder, "tree"])
        for extension in extensions:
            unpack_extension(folder, extension)
        run([DEV_SERVER, "-d", folder, "init", conf])
        run([DEV_SERVER, "-d", folder, "start"])
        yield Server(folder)
    finally:
        run([DEV_SERVER, "-d", folder, "remove"])


def unpack_extension(folder, extension):
    """Puts the files of Debian's package of this extension into the server's tree; nothing is installed on the machine."""
    bindir = pathlib.Path(run([DEV_SERVER, "-d", folder, "bindir"]).strip())
    with tempfile.TemporaryDirectory() as download:
        run(["apt-get", "-qq", "-o", f"APT::Sandbox::User={getpass.getuser()}", "download",
             f"postgresql-{bindir.parent.name}-{extension}"], cwd=download)
        for package in pathlib.Path(download).glob("*.deb"):
            run(["dpkg", "-x", package, pathlib.Path(folder) / "root"])


def chosen_server(folder, settings, extensions=()):
    """The server that runs in this folder, which stays; without a folder a private one with these settings and extensions."""
    return contextlib.nullcontext(Server(folder)) if folder else private_server(settings, extensions)


def process_stat(pid):
    """(parent, CPU seconds of the process, CPU seconds of its children that were waited for), or None."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    user, system, child_user, child_system = map(int, fields[11:15])
    return int(fields[1]), (user + system) / TICK, (child_user + child_system) / TICK


def process_usage(pid):
    """(nanoseconds on a CPU, times it went to sleep of its own accord), both since the process began."""
    proc = pathlib.Path(f"/proc/{pid}")
    try:
        cpu, status = (proc / "schedstat").read_text(), (proc / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        raise Failed(f"process {pid} of the server has ended") from None
    sleeps = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)
    return int(cpu.split()[0]), int(sleeps[1])


def process_title(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Server:
    """A running server in a folder of dev/server."""

    def __init__(self, folder):
        settings = re.findall(r"^export (\w+)=(.*)$", run([DEV_SERVER, "-d", folder, "env"]), re.MULTILINE)
        self.environment = dict(os.environ, PGAPPNAME="bench", PGOPTIONS="-c client_min_messages=warning")
        self.environment.update((name, shlex.split(value)[0]) for name, value in settings if name.startswith("PG"))
        self.bindir = pathlib.Path(run([DEV_SERVER, "-d", folder, "bindir"]).strip())
        self.data = pathlib.Path(self.psql("SHOW data_directory").strip())
        self.postmaster = int((self.data / "postmaster.pid").read_text().split()[0])

    def psql(self, text, database=None):
        """What these statements print: unaligned, without headers."""
        database = database or self.environment["PGDATABASE"]
        command = [self.bindir / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", database, "-f", "-"]
        return run(command, text, env=self.environment)

    @contextlib.contextmanager
    def database(self, name):
        """The server as its clients see it in a new database, which is dropped afterwards."""
        inside = copy.copy(self)
        inside.environment = dict(self.environment, PGDATABASE=name)
        self.psql(f"CREATE DATABASE {name}")
        try:
            yield inside
        finally:
            self.psql(f"DROP DATABASE {name} WITH (FORCE)")

    def pgbench(self, script, variables, clients, *extent, **options):
        """Transactions a second, when each client runs the script as often as pgbench's options in extent say."""
        defines = [word for name, value in variables.items() for word in ("-D", f"{name}={value}")]
        command = [self.bindir / "pgbench", "-n", "-M", "prepared", "-c", str(clients), *map(str, extent),
                   *defines, "-f", "/dev/stdin"]
        report = run(command, script, env=self.environment, **options)
        return float(re.search(r"^tps = ([0-9.]+)", report, re.MULTILINE)[1])

    def await_answer(self, question, answer, seconds=30):
        """Asks until psql prints this answer."""
        deadline = time.monotonic() + seconds
        while (found := self.psql(question).strip()) != answer:
            if time.monotonic() > deadline:
                raise Failed(f"{question}: still {found} after {seconds} s, waited for {answer}")
            time.sleep(0.05)

    def end_sessions(self):
        """Ends what clients of this run have left behind, such as a sleep whose client was killed."""
        left = "FROM pg_stat_activity WHERE application_name = 'bench' AND pid <> pg_backend_pid()"
        self.psql(f"SELECT pg_terminate_backend(pid) {left}")
        self.await_answer(f"SELECT count(*) {left}", "0")

    def background_workers(self, kind):
        """{pid: database} of the processes of this backend_type; a process without a database has ''."""
        rows = self.psql(f"SELECT pid, datname FROM pg_stat_activity WHERE backend_type = '{kind}' ORDER BY datname")
        return {int(pid): database for pid, database in (row.split("|") for row in rows.splitlines())}

    def children(self):
        """The processes below the postmaster: {pid: CPU seconds}."""
        found = {}
        for entry in os.scandir("/proc"):
            stat = process_stat(entry.name) if entry.name.isdigit() else None
            if stat and stat[0] == self.postmaster:
                found[int(entry.name)] = stat[1]
        return found

    def cpu_seconds(self):
        """CPU time of the whole server since its start. Waits until the last client's process has been buried:
        only then does the postmaster's own account hold it."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            before = process_stat(self.postmaster)
            children = self.children()
            after = process_stat(self.postmaster)
            if before == after and not any("[local]" in process_title(pid) for pid in children):
                return after[1] + after[2] + sum(children.values())
            time.sleep(0.01)
        raise Failed("clients are still connected to the server under test")

    def wal_position(self):
        return self.psql("SELECT pg_catalog.pg_current_wal_flush_lsn()").strip()

    def wal_bytes(self, start, end):
        """(bytes of all records, bytes of page images among them) between two positions."""
        report = run([self.bindir / "pg_waldump", "--stats", "--path", self.data / "pg_wal", "--start", start, "--end", end])
        total = re.search(r"^Total +\d+ +(\d+) \[.*?\] +(\d+) \[.*?\] +(\d+)", report, re.MULTILINE)
        return int(total[3]), int(total[2])
