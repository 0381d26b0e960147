# The queues that bench/flat compares. Each has its statements in a file of its name, is set up in a database that is new,
# and keeps no row of a completed job.

from payloads import payload_array, payload_text
from statements import read_statements
from workers import HERE, QUEUE

PAYLOAD_BYTES = 100
CHUNK = 10_000          # jobs that one statement puts in
LONGEST = 500_000       # jobs that one session puts in


class Variant:
    def __init__(self):
        self.schema, self.statements = read_statements(HERE / f"{self.name}.sql")

    def set_up(self, server):
        server.psql(self.schema)

    def fill(self, server, jobs, priority=5):
        """Makes so many jobs; those who measure do that before they begin, or between two turns."""
        chunks = [CHUNK] * (jobs // CHUNK) + [jobs % CHUNK] * (jobs % CHUNK > 0)
        for first in range(0, len(chunks), LONGEST // CHUNK):
            text = "".join(self.put(chunk, priority) + ";\n" for chunk in chunks[first:first + LONGEST // CHUNK])
            server.psql("SET synchronous_commit = off;\n" + text)

    def count(self, server):
        """Jobs that have not ended."""
        return int(server.psql(f"SELECT count(*) FROM {self.jobs}"))

    def settle(self, server):
        """Statistics for the planner, no dead rows, and a checkpoint behind us."""
        server.psql("VACUUM (ANALYZE); CHECKPOINT;")

    def warm(self, server):
        """All indexes of the queue's tables are in the server's cache."""
        schema = self.jobs.partition(".")[0]
        server.psql("CREATE EXTENSION IF NOT EXISTS pg_prewarm; SELECT pg_prewarm(oid::regclass) FROM pg_class"
                    f" WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'i';")


class Jobq(Variant):
    name = "jobq"
    jobs = "jobq.job"
    has_priorities = True

    def set_up(self, server):
        server.psql(f"CREATE EXTENSION jobq; SELECT jobq.create_queue('{QUEUE}', keep_completed => '0');")

    def put(self, jobs, priority):
        return (f"SELECT count(*) FROM jobq.enqueue_batch('task', {payload_array(PAYLOAD_BYTES, jobs)}, '{QUEUE}',"
                f" priority => {priority})")


class Plain(Variant):
    name = "plain"
    jobs = "plain.job"
    has_priorities = True

    def put(self, jobs, priority):
        return (f"INSERT INTO plain.job (queue, task, payload, priority) SELECT '{QUEUE}', 'task',"
                f" {payload_text(PAYLOAD_BYTES, 'n')}, {priority} FROM generate_series(1, {jobs}) AS n")


class Visible(Variant):
    name = "visible"
    jobs = "visible.message"
    has_priorities = False

    def put(self, jobs, priority):
        return (f"INSERT INTO visible.message (task, payload) SELECT 'task', {payload_text(PAYLOAD_BYTES, 'n')}"
                f" FROM generate_series(1, {jobs}) AS n")


VARIANTS = {variant.name: variant for variant in (Jobq, Plain, Visible)}
