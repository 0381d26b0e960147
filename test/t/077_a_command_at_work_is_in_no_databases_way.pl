
# Whoever drops, renames or copies a database need not look who runs commands in it, or in any other (cases 122 to 124). An extension is dropped beside
# a command at work, which notices nothing until it has ended, and made again without a restart (case 116). A server that turns read-only runs none, and says so
# once (case 119).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $too_long = 10;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_line_prefix = '%m [%p] %b '\njobq.sql_workers = 4\nmax_worker_processes = 12");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE ann LOGIN; CREATE DATABASE own; CREATE DATABASE pattern');
$node->safe_psql($_, 'CREATE EXTENSION jobq; CREATE TABLE effect (what text); GRANT ALL ON effect TO ann; GRANT jobq_scheduler TO ann') for qw(postgres own pattern);

my %states = (
	'asleep' => ['SELECT pg_sleep(1000)', "wait_event = 'PgSleep'"],
	'in a loop' => ['DO $$ BEGIN LOOP END LOOP; END $$', "state = 'active' AND query ~ 'LOOP' AND wait_event IS NULL"],
	'between commits' => ['DO $$ BEGIN LOOP PERFORM pg_sleep(0.001); COMMIT; END LOOP; END $$', "state = 'active' AND query ~ 'COMMIT'"],
	'one that catches its cancellation' => ["DO \$\$ BEGIN LOOP BEGIN PERFORM pg_sleep(0.5); EXCEPTION WHEN query_canceled OR admin_shutdown THEN NULL; END; END LOOP; END \$\$", "wait_event = 'PgSleep'"]);
sub enqueue { my ($database, $command) = @_; return $node->safe_psql($database, "SELECT jobq.enqueue_sql(\$q\$$command\$q\$, run_as => 'ann')") }
sub at_work
{
	my ($database, $command, $when) = @_;
	my $id = enqueue($database, $command);
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = '$database' AND backend_type = 'jobq executor' AND $when") or die "not: $when";
	return $id;
}
sub ends
{
	my ($database, $id) = @_;
	$node->poll_query_until($database, "SELECT ended_at IS NOT NULL FROM jobq.sql_jobs WHERE job_id = $id") or die "job $id does not end";
	return $node->safe_psql($database, "SELECT state, attempt, split_part(last_error, E'\\n', 1) FROM jobq.sql_jobs WHERE job_id = $id");
}
sub soon
{
	my ($what, @sql) = @_;
	my $began = time;
	$node->safe_psql('postgres', $_) for @sql;
	cmp_ok(time - $began, '<', $too_long, "$what is soon done");
	return;
}
my $told_to_go = 'dead|1|57P01: canceled, since its process was asked to end';

# Of another database: the command goes on.
for my $state ('idle', sort keys %states)
{
	my $id = $state eq 'idle' ? undef : at_work('postgres', @{ $states{$state} });
	is(ends('postgres', enqueue('postgres', 'SELECT 1')), 'completed|1|', 'an executor') unless $id;
	soon("$state: to drop another database", 'CREATE DATABASE x', 'DROP DATABASE x');
	next unless $id;
	is($node->safe_psql('postgres', "SELECT state, attempt FROM jobq.sql_jobs WHERE job_id = $id"), 'running|1', "$state: the command goes on");
	$node->safe_psql('postgres', "SELECT jobq.cancel($id)");
	like(ends('postgres', $id), qr/^cancelled\|1\|/, "$state: until it is cancelled");
}

# Of its own: it is ended, and its job has an end.
my %renames = ('rename' => ['ALTER DATABASE own RENAME TO owned', 'ALTER DATABASE owned RENAME TO own'], 'copy' => ['CREATE DATABASE y TEMPLATE own', 'DROP DATABASE y'], 'move' => ['ALTER DATABASE own SET TABLESPACE elsewhere', 'ALTER DATABASE own SET TABLESPACE pg_default']);
my $folder = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$folder'");
for my $what (sort keys %renames)
{
	for my $state ('idle', 'asleep', 'in a loop')
	{
		my $id = $state eq 'idle' ? enqueue('own', 'SELECT 1') : at_work('own', @{ $states{$state} });
		ends('own', $id) if $state eq 'idle';
		soon("$state: to $what its database", @{ $renames{$what} });
		is(ends('own', $id), $state eq 'idle' ? 'completed|1|' : $told_to_go, "$state: what became of the command");
	}
}
is(ends('own', enqueue('own', 'SELECT 1')), 'completed|1|', 'and the next one runs');

# Dropped, made again: commands at work never are in the way, nor of FORCE.
for my $round (1 .. 8)
{
	my ($command, $when) = @{ $states{ (sort keys %states)[$round % 4] } };
	at_work('own', $command, $when);
	soon("round $round: to drop its database", 'DROP DATABASE own' . ($round % 2 ? '' : ' WITH (FORCE)'), 'CREATE DATABASE own TEMPLATE pattern');
	my ($status, $out, $err) = $node->psql('own', "SELECT jobq.adopt()");
}
is(ends('own', enqueue('own', 'SELECT 1')), 'completed|1|', 'in the last one commands run');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_database WHERE datconnlimit < -1"), '0', 'no database is left invalid');

# The extension: dropped while a command runs, and while that is rolled back.
my $works = at_work('postgres', "INSERT INTO effect VALUES ('beside'); SELECT pg_sleep(2)", "wait_event = 'PgSleep'");
$node->safe_psql('postgres', 'BEGIN; DROP EXTENSION jobq; SELECT pg_sleep(0.2); ROLLBACK');
is(ends('postgres', $works), 'completed|1|', 'a drop that was rolled back harms no command');
my $log = -s $node->logfile;
at_work('postgres', "INSERT INTO effect VALUES ('lost'); SELECT pg_sleep(2)", "wait_event = 'PgSleep'");
soon('beside a command: to drop the extension', 'DROP EXTENSION jobq');
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'postgres' AND backend_type = 'jobq executor'");
unlike(slurp_file($node->logfile, $log), qr/\] jobq \S+ (ERROR|FATAL|PANIC|WARNING)/, 'nobody complains');
$node->safe_psql('postgres', 'CREATE EXTENSION jobq; GRANT jobq_scheduler TO ann');
is(ends('postgres', enqueue('postgres', "INSERT INTO effect VALUES ('again')")), 'completed|1|', 'made again, it runs commands');
at_work('postgres', 'SELECT pg_sleep(2)', "wait_event = 'PgSleep'");
soon('beside a command: to drop it and make it anew', 'BEGIN; DROP EXTENSION jobq; CREATE EXTENSION jobq; COMMIT');
is(ends('postgres', enqueue('postgres', "INSERT INTO effect VALUES ('anew')")), 'completed|1|', 'in one transaction too');
is($node->safe_psql('postgres', "SELECT string_agg(what, ' ' ORDER BY what) FROM effect"), 'again anew beside lost', 'what a command has done stays');

# A server that becomes read-only.
$works = at_work('postgres', 'SELECT pg_sleep(1)', "wait_event = 'PgSleep'");
$log = -s $node->logfile;
$node->safe_psql('postgres', 'ALTER SYSTEM SET default_transaction_read_only = on');
$node->reload;
is(ends('postgres', $works), 'completed|1|', 'what runs when the server turns read-only has its end written down');
my $waits = $node->safe_psql('postgres', "SET default_transaction_read_only = off; SELECT jobq.enqueue_sql('SELECT 1', run_as => 'ann')");
$node->safe_psql('postgres', 'SELECT pg_sleep(3)');
is($node->safe_psql('postgres', "SELECT state, attempt FROM jobq.sql_jobs WHERE job_id = $waits"), 'ready|0', 'nothing is begun then');
my @lines = grep { /\] jobq (manager|executor) / && !/jobq (manager|executor) (started|ended)|executor started/ } split /\n/, slurp_file($node->logfile, $log);
cmp_ok(scalar @lines, '<=', 3, 'and it is said once') or diag(@lines);
$node->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only');
$node->reload;
is(ends('postgres', $waits), 'completed|1|', 'it runs when the server writes again');
$node->stop;
done_testing();
