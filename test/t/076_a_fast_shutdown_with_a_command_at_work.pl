
# pg_ctl stop -m fast ends soon, whatever a command is doing (case 111). Its attempt has failed by then, and is not started again after its tries. While a
# synchronous standby is away no command starts, since its claim may be lost with the server (case 137), and nobody is held up by that (case 122). A
# promoted standby ends the attempt of its primary by its lease (case 51).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $too_long = 10;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_line_prefix = '%m [%p] %b '\njobq.sweep_grace = '1s'\njobq.sweep_interval = '100ms'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	CREATE ROLE ann LOGIN IN ROLE jobq_scheduler;
	CREATE TABLE effect (what text);
	GRANT ALL ON effect TO ann;
});

sub enqueue { my ($command, $more) = @_; return $node->safe_psql('postgres', "SELECT jobq.enqueue_sql(\$q\$$command\$q\$, run_as => 'ann'" . ($more || '') . ')') }
sub ended { my ($id, $server) = @_; return ($server || $node)->safe_psql('postgres', "SELECT state, attempt, split_part(last_error, E'\\n', 1) FROM jobq.sql_jobs WHERE job_id = $id") }
sub waits { my ($id, $for) = @_; $node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'jobq executor' AND $for") or die "job $id: not $for"; return }
sub stops
{
	my ($what, $id, $for) = @_;
	waits($id, $for);
	my $began = time;
	$node->stop('fast');
	cmp_ok(time - $began, '<', $too_long, "$what: it stops");
	$node->start;
	is(ended($id), 'dead|1|57P01: canceled, since its process was asked to end', "$what: the attempt has failed");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM effect'), '0', "$what: and is undone");
	return;
}

stops('asleep', enqueue("INSERT INTO effect VALUES ('asleep'); SELECT pg_sleep(1000)"), "wait_event = 'PgSleep'");
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE effect');
stops('waiting for a lock', enqueue("INSERT INTO effect VALUES ('locked')"), "wait_event_type = 'Lock'");
eval { $locker->quit };
stops('in a loop', enqueue('DO $$ BEGIN LOOP END LOOP; END $$'), "state = 'active' AND query ~ 'LOOP'");
stops('between commits', enqueue('DO $$ BEGIN LOOP PERFORM pg_sleep(0.001); COMMIT; END LOOP; END $$'), "state = 'active' AND query ~ 'COMMIT'");
my $idle = enqueue('SELECT 1');
$node->poll_query_until('postgres', "SELECT state = 'completed' FROM jobq.sql_jobs WHERE job_id = $idle");
my $began = time;
$node->stop('fast');
cmp_ok(time - $began, '<', $too_long, 'idle: it stops');
unlike(slurp_file($node->logfile), qr/jobq executor (FATAL|ERROR)/, 'none of them was killed');

# a standby: it runs none itself, and when it is promoted the attempt that it knows of is over when its lease is
$node->append_conf('postgresql.conf', "synchronous_standby_names = 'standby'");
$node->start;
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_conninfo = '" . $node->connstr . " application_name=standby'\nsynchronous_standby_names = ''");
$standby->start;
my $ran = enqueue("INSERT INTO effect VALUES ('ran')");
ok($node->poll_query_until('postgres', "SELECT state = 'completed' FROM jobq.sql_jobs WHERE job_id = $ran"), 'with a standby there commands run');
$node->safe_psql('postgres', "SELECT jobq.alter_queue(name, lease => '1 s', retry_base => '100 ms') FROM jobq.queue WHERE name LIKE 'sql/%'");
my $once = enqueue('SELECT pg_sleep(1000)');
my $twice = enqueue("INSERT INTO effect VALUES ('twice'); SELECT pg_sleep(CASE WHEN inet_server_port() IS NULL THEN 1000 END)", ', max_attempts => 2');
waits($once, "query ~ 'pg_sleep\\(1000\\)'");
waits($twice, "query ~ 'twice'");
$standby->stop;

# away
my $away = $node->background_psql('postgres');
$away->query_until(qr/enqueues/, "\\echo enqueues\nSET synchronous_commit = local;\nSELECT jobq.cancel($once), jobq.enqueue_sql(\$q\$INSERT INTO effect VALUES ('away')\$q\$, run_as => 'ann');\n");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM jobq.jobs j JOIN jobq.sql_jobs s USING (job_id) WHERE s.command ~ 'away' AND j.state = 'running'"), 'while it is away, a claim is made');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq executor' AND (wait_event = 'SyncRep' OR query ~ 'away')"), '0', 'nobody waits inside a commit, and the command does not start');
$began = time;
$node->safe_psql('postgres', 'SET synchronous_commit = local; CREATE DATABASE other');
$node->safe_psql('postgres', 'SELECT pg_sleep(3)');
is($node->safe_psql('postgres', "SELECT state, attempt FROM jobq.sql_jobs WHERE command ~ 'away'"), 'running|1', 'its lease of a second is renewed while it waits');
$node->safe_psql('postgres', 'SET synchronous_commit = local; DROP DATABASE other');
cmp_ok(time - $began, '<', $too_long, 'a database is dropped beside it');
$began = time;
$node->stop('fast');
cmp_ok(time - $began, '<', $too_long, 'away: it stops');
eval { $away->quit };

$standby->start;
$standby->promote;
ok($standby->poll_query_until('postgres', "SELECT bool_and(state = 'dead') FROM jobq.sql_jobs WHERE job_id = $once"), 'promoted, it ends what had one try');
is(ended($once, $standby), 'dead|1|lease expired', 'by its lease');
ok($standby->poll_query_until('postgres', "SELECT attempt = 2 AND state = 'running' FROM jobq.sql_jobs WHERE job_id = $twice"), 'and runs what has another');
is($standby->safe_psql('postgres', "SELECT count(*) FROM jobq.sql_jobs WHERE command ~ 'away'"), '0', 'it does not know what the primary had alone');
$standby->stop;
done_testing();
