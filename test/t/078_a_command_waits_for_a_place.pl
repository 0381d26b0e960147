
# Where there is no process to be had, SQL jobs wait, untried, health() says why and the log once (cases 106, 107). Among those that wait the one that is
# due first comes first, so that a frequent long command keeps no rare one from running, whatever the roles (cases 72, 109).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
# The launcher, the manager, the server's own launcher of logical replication, and one place.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_line_prefix = '%m [%p] %b '\nmax_worker_processes = 4\njobq.sql_workers = 8");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	CREATE ROLE ann LOGIN IN ROLE jobq_scheduler;
	CREATE ROLE bob LOGIN IN ROLE jobq_scheduler;
	CREATE ROLE carol LOGIN IN ROLE jobq_scheduler;
	CREATE TABLE effect (what text, at timestamptz DEFAULT clock_timestamp());
	GRANT ALL ON effect TO PUBLIC;
});
sub asks { my ($sql) = @_; return $node->safe_psql('postgres', $sql) }
sub becomes { my ($sql, $name) = @_; ok($node->poll_query_until('postgres', $sql), $name); return }
sub enqueue { my ($role, $command, $more) = @_; return asks("SELECT jobq.enqueue_sql(\$q\$$command\$q\$, run_as => '$role'" . ($more || '') . ')') }
sub health { return asks("SELECT ok, message FROM jobq.health() WHERE check_name = 'sql jobs'") }
sub set { my ($name, $value) = @_; asks("ALTER SYSTEM SET $name = $value"); $node->reload; return }

# One place, 20 jobs that want eight.
my $first = enqueue('ann', 'SELECT pg_sleep(1000)');
becomes("SELECT state = 'running' FROM jobq.sql_jobs WHERE job_id = $first", 'one runs');
enqueue('ann', "INSERT INTO effect VALUES ('waited')") for 1 .. 20;
becomes("SELECT NOT ok AND message = '1 SQL jobs run, 20 are ready and wait: no background worker slot is free: raise max_worker_processes' FROM jobq.health() WHERE check_name = 'sql jobs'", 'health() says why the others wait');
$node->wait_for_log(qr/LOG:  jobq manager: no free background worker slot for SQL jobs, which wait; raise max_worker_processes and restart the server/);
asks('SELECT pg_sleep(3)'); # it has tried every 5 s
is(() = slurp_file($node->logfile) =~ /no free background worker slot for SQL jobs/g, 1, 'and the log says so once');
is(asks("SELECT count(*), max(attempt) FROM jobq.sql_jobs WHERE state = 'ready'"), '20|0', 'no try is used up');
asks("SELECT jobq.cancel($first)");
becomes("SELECT count(*) = 20 FROM effect WHERE what = 'waited'", 'when there is a place they run');
is(asks("SELECT count(*), max(attempt) FROM jobq.sql_jobs WHERE state = 'completed'"), '20|1', 'once each');
like(health(), qr/^t\|0 SQL jobs run, 0 are ready$/, 'health() is content');

# The same place, taken by somebody else: parallel queries, workers of other extensions.
becomes("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid IN (SELECT pg_terminate_backend(pid)::int FROM pg_stat_activity WHERE backend_type = 'jobq executor')", 'its executor is gone');
my $taker = $node->background_psql('postgres');
$taker->query_safe("SET force_parallel_mode = on; SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; CREATE FUNCTION sleeps() RETURNS void LANGUAGE sql PARALLEL SAFE AS 'SELECT pg_sleep(1000)'");
$taker->query_until(qr/takes/, "\\echo takes\nSELECT sleeps();\n");
becomes("SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'parallel worker'", 'a parallel query takes the place');
my $waits = enqueue('ann', "INSERT INTO effect VALUES ('waits')");
asks('SELECT pg_sleep(1)');
is(asks("SELECT state, attempt FROM jobq.sql_jobs WHERE job_id = $waits"), 'ready|0', 'the job waits');
asks("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND query ~ 'sleeps' AND pid <> pg_backend_pid()");
becomes("SELECT state = 'completed' FROM jobq.sql_jobs WHERE job_id = $waits", 'and runs once the query has ended');
eval { $taker->quit };

# None at all.
set('jobq.sql_workers', 0);
becomes("SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'jobq executor'", 'with no executors allowed those that wait leave');
my $none = enqueue('ann', "INSERT INTO effect VALUES ('none')");
asks("UPDATE jobq.sql_command SET due_at = now() - interval '1 min' WHERE job_id = $none");
becomes("SELECT NOT ok AND message = '0 SQL jobs run, 1 are ready and wait: all 0 executors (jobq.sql_workers) are taken' FROM jobq.health() WHERE check_name = 'sql jobs'", 'jobs wait');
set('jobq.sql_workers', 1);
becomes("SELECT state = 'completed' FROM jobq.sql_jobs WHERE job_id = $none", 'and run when they may');

# One executor; one role's command every second takes longer than a second, another's comes every three.
asks("SELECT jobq.schedule('long', '* * * * * *', 'INSERT INTO effect VALUES (''long''); SELECT pg_sleep(1.5)', run_as => 'ann', overlap => 'allow')");
asks("SELECT jobq.schedule('rare', '*/3 * * * * *', 'INSERT INTO effect VALUES (''rare'')', run_as => 'bob', overlap => 'allow')");
becomes("SELECT count(*) >= 3 FROM effect WHERE what = 'rare'", 'the rare one runs again and again');
asks("SELECT jobq.pause_schedule('long'), jobq.pause_schedule('rare')");

# What is due later waits behind what is due now, though it was made before.
my $holder = enqueue('ann', 'SELECT pg_sleep(1000)');
becomes("SELECT state = 'running' FROM jobq.sql_jobs WHERE job_id = $holder", 'the place is taken');
my $later = enqueue('carol', 'SELECT 1', ", delay => '1 s'");
my $sooner = enqueue('bob', 'SELECT 1');
becomes("SELECT state = 'ready' FROM jobq.sql_jobs WHERE job_id = $later", 'both are due');
asks("SELECT jobq.cancel($holder)");
becomes("SELECT count(*) = 2 FROM jobq.sql_jobs WHERE job_id IN ($later, $sooner) AND state = 'completed'", 'both run');
is(asks("SELECT l.claimed_at > s.claimed_at FROM jobq.sql_jobs l, jobq.sql_jobs s WHERE l.job_id = $later AND s.job_id = $sooner"), 't', 'the one that was due first before the other');
my $due = "SELECT s.run_as, s.claimed_at, coalesce(r.run_at, s.enqueued_at) AS due FROM jobq.sql_jobs s JOIN jobq.schedule_runs r USING (job_id) WHERE s.claimed_at IS NOT NULL";
# Right is: whenever one of a role was begun, none of the other had been waiting since before its instant, but for the one that was begun while the manager had not yet seen it.
is(asks("WITH run AS ($due) SELECT count(*) FROM run a, run b WHERE a.run_as <> b.run_as AND a.claimed_at < b.claimed_at - interval '3.5 s' AND a.due > b.due + interval '1 s'"), '0', 'none overtakes what is older');
cmp_ok(asks("SELECT count(*) FROM effect WHERE what = 'long'"), '>=', 3, 'and the long one too');
is(asks("SELECT count(*) FROM jobq.failures WHERE kind = 'expired'"), '0', 'nobody crashed');
$node->stop;
done_testing();
