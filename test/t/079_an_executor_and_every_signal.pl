
# An executor and each signal, without work and with a command: what asks for something small changes nothing, a cancellation ends the command and no
# more, a termination the command and the process; each job has one end, and the next one runs (cases 104, 178). test/t/075 kills it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_line_prefix = '%m [%p] %b '\njobq.sql_workers = 1");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	CREATE ROLE ann LOGIN IN ROLE jobq_scheduler;
	CREATE TABLE effect (what text);
	GRANT ALL ON effect TO ann;
});
my $session = $node->background_psql('postgres');
sub asks { my ($sql) = @_; return $node->safe_psql('postgres', $sql) }
sub enqueue { my ($command) = @_; return asks("SELECT jobq.enqueue_sql(\$q\$$command\$q\$, run_as => 'ann')") }
sub ends
{
	my ($id) = @_;
	$node->poll_query_until('postgres', "SELECT ended_at IS NOT NULL FROM jobq.sql_jobs WHERE job_id = $id") or die "job $id does not end";
	return asks("SELECT state, attempt, split_part(last_error, E'\\n', 1) FROM jobq.sql_jobs WHERE job_id = $id");
}
sub pid { return asks("SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE backend_type = 'jobq executor'") }
sub is_gone { my ($pid) = @_; return $node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid") }

my %send = (
	(map { my $signal = $_; $signal => sub { kill $signal, $_[0] } } qw(INT HUP USR1 USR2 TERM)),
	(map { my $function = $_; $function => sub { $session->query_safe("SELECT $function($_[0])") } } qw(pg_cancel_backend pg_terminate_backend)));
my %states = (
	'asleep' => ["INSERT INTO effect VALUES ('asleep'); SELECT pg_sleep(1)", "wait_event = 'PgSleep'"],
	'at work' => ["INSERT INTO effect VALUES ('at work'); SELECT count(*) FROM generate_series(1, 3000000)", "state = 'active' AND query ~ 'series'"],
	'waiting for a lock' => ["INSERT INTO effect VALUES ('waited')", "wait_event_type = 'Lock'"]);

for my $way (sort keys %send)
{
	my $end = $way =~ /term/i ? 'dead|1|57P01: canceled, since its process was asked to end' : $way =~ /int|cancel/i ? 'dead|1|57014: canceling statement due to user request' : 'completed|1|';
	is(ends(enqueue('SELECT 1')), 'completed|1|', "$way: there is an executor");
	my $pid = pid();
	$send{$way}->($pid);
	is_gone($pid) if $way =~ /term/i;
	is(ends(enqueue('SELECT 1')), 'completed|1|', "$way, without work: the next job runs");
	is(pid() != $pid, $way =~ /term/i, "$way, without work: in " . ($way =~ /term/i ? 'another' : 'the same') . ' process');
	for my $state (sort keys %states)
	{
		my ($command, $when) = @{ $states{$state} };
		$session->query_safe('BEGIN; LOCK TABLE effect') if $state =~ /lock/;
		my $id = enqueue($command);
		my $at_work = "backend_type = 'jobq executor' AND $when";
		$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE $at_work") or die "$way: not $state";
		$pid = pid();
		$send{$way}->($pid);
		$session->query_safe('SELECT pg_sleep(0.1); COMMIT') if $state =~ /lock/;
		is(ends($id), $end, "$way, $state: how the job ends");
		is(asks("WITH gone AS (DELETE FROM effect RETURNING 1) SELECT count(*) FROM gone"), $end =~ /completed/ ? '1' : '0', "$way, $state: what is left of it");
		is_gone($pid) if $way =~ /term/i;
		is(ends(enqueue('SELECT 1')), 'completed|1|', "$way, $state: the next one runs");
		is(pid() == $pid, $way !~ /term/i, "$way, $state: in the right process");
	}
}
$session->quit;

# All connections of the database at once, as somebody does before a restore.
my $id = enqueue('SELECT pg_sleep(100)');
$node->poll_query_until('postgres', "SELECT state = 'running' FROM jobq.sql_jobs WHERE job_id = $id");
asks('SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()');
is(ends($id), 'dead|1|57P01: canceled, since its process was asked to end', 'all connections of the database terminated: its job has an end');
is(ends(enqueue('SELECT 1')), 'completed|1|', 'the next one runs');

# A pause that the executor knows nothing of: its job is nobody else's meanwhile.
$id = enqueue("INSERT INTO effect VALUES ('stopped'); SELECT pg_sleep(0.5)");
$node->poll_query_until('postgres', "SELECT state = 'running' FROM jobq.sql_jobs WHERE job_id = $id");
my $pid = pid();
kill 'STOP', $pid;
asks('SELECT pg_sleep(2)');
kill 'CONT', $pid;
is(ends($id), 'completed|1|', 'stopped for a while: it goes on');
is(asks("SELECT count(*) FROM effect WHERE what = 'stopped'"), '1', 'once');
my @bad = grep { /\] jobq \S+ (ERROR|FATAL|PANIC|WARNING):/ } split /\n/, slurp_file($node->logfile);
is("@bad", '', 'none of that is an error of jobq in the log');
is(asks("SELECT count(*) FROM jobq.failures WHERE kind = 'expired'"), '0', 'nor a crash');
$node->stop;
done_testing();
