# The server under test, made by dev/server for this run alone (or kept by the caller), and what is read from it from
# outside: WAL positions, and the CPU time of all its processes, ended ones too.

import contextlib
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
DEV_SERVER = HERE.parent / "dev" / "server"
TICK = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """Something that the measurement needs went wrong."""


def run(command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command[:4]))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@contextlib.contextmanager
def private_server(settings):
    """A server with these settings (a text) that is gone afterwards, also after Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = run([DEV_SERVER, "new", "bench"]).strip()
    try:
        conf = pathlib.Path(folder) / "bench.conf"
        conf.write_text(settings)
        run([DEV_SERVER, "-d", folder, "up", conf])
        yield Server(folder)
    finally:
        run([DEV_SERVER, "-d", folder, "remove"])


def process_stat(pid):
    """(parent, CPU seconds of the process, CPU seconds of its children that were waited for), or None."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    user, system, child_user, child_system = map(int, fields[11:15])
    return int(fields[1]), (user + system) / TICK, (child_user + child_system) / TICK


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

    def psql(self, text):
        """What these statements print: unaligned, without headers."""
        command = [self.bindir / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-f", "-"]
        return run(command, input=text, env=self.environment)

    def pgbench(self, script, variables, clients, transactions):
        """Transactions a second, when each client runs the script so many times."""
        defines = [word for name, value in variables.items() for word in ("-D", f"{name}={value}")]
        command = [self.bindir / "pgbench", "-n", "-M", "prepared", "-c", str(clients), "-t", str(transactions),
                   *defines, "-f", "/dev/stdin"]
        report = run(command, input=script, env=self.environment)
        return float(re.search(r"^tps = ([0-9.]+)", report, re.MULTILINE)[1])

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
