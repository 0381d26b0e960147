
# DROP DATABASE, WITH (FORCE) too, ALTER DATABASE ... RENAME and SET TABLESPACE, and CREATE DATABASE ... TEMPLATE need a database without
# sessions. With a manager that is idle, in the middle of a step or just coming in they take no longer than without, nothing of it is
# in the log, and the manager is back where it should be (promise 10, cases 122, 123, 126).
#
# JOBQ_ROUNDS: how often each is done.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

# The server gives up after five seconds. A machine that is busy with other things delays one command or another, but not most of them.
my $too_long = 5;
my $usual = 1;
my $rounds = $ENV{JOBQ_ROUNDS} || 4;

my (@times, @complaints);
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'jobq'
allow_in_place_tablespaces = on
log_line_prefix = '%m [%p] %b '
log_min_duration_statement = -1
log_statement = none
});
$node->start;
my $session = $node->background_psql('postgres');
$session->set_query_timer_restart;
$session->query_safe(q{CREATE TABLESPACE elsewhere LOCATION ''});

# A step in `busy` lasts for a quarter of an hour, and begins again when it was broken off.
for my $database (qw(idle busy))
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION jobq');
}
$node->safe_psql('busy', q{
	CREATE FUNCTION public.slow(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1); RETURN $1; END';
	CREATE INDEX slow ON jobq.ready (public.slow(job_id));
	SELECT count(*) FROM jobq.enqueue_batch('late', (SELECT jsonb_agg(n) FROM generate_series(1, 1000) n), delay => '10 ms');
});

for my $database (qw(idle busy))
{
	for my $round (1 .. $rounds)
	{
		quick("ALTER DATABASE $database RENAME TO other", $database);
		quick("ALTER DATABASE other RENAME TO $database", 'other', $database);
		comes($database, "RENAME $database");
		quick("ALTER DATABASE $database SET TABLESPACE " . ($round % 2 ? 'elsewhere' : 'pg_default'), $database);
		comes($database, "SET TABLESPACE $database");
		quick("CREATE DATABASE clone TEMPLATE $database", $database);
		comes($database, "TEMPLATE $database");
		comes('clone', "TEMPLATE $database, the new one", $database);
		quick('DROP DATABASE clone' . ($round % 2 ? '' : ' WITH (FORCE)'), 'clone', $database);
	}
	outcome($database);
}
is($node->safe_psql('busy', q{SELECT count(*), count(*) FILTER (WHERE state = 'delayed' AND attempt = 0) FROM jobq.jobs}), '1000|1000',
	'steps that were broken off have left nothing');

# A manager is on its way: each round a little later.
for my $round (0 .. 3 * $rounds)
{
	quick('CREATE DATABASE clone TEMPLATE idle');
	usleep(500 * $round);
	quick('DROP DATABASE clone' . ($round % 2 ? '' : ' WITH (FORCE)'));
}
for my $round (0 .. 3 * $rounds)
{
	quick('ALTER DATABASE idle RENAME TO other');
	usleep(500 * $round);
	quick('ALTER DATABASE other RENAME TO idle');
	usleep(500 * $round);
}
comes('idle', 'RENAME in a row');
outcome('while a manager comes in');

# Any database, with the busy manager beside it (case 122).
comes('busy', 'beside');
for my $round (0 .. 3 * $rounds)
{
	quick('CREATE DATABASE x');
	usleep(500 * $round);
	$session->query_safe(q{SET statement_timeout = '5s'});
	quick('DROP DATABASE x');
	$session->query_safe('RESET statement_timeout');
}
outcome('a database without the extension');
comes('busy', 'beside');

is_deeply([ noise() ], [], 'nothing in the log');
$session->quit;
$node->stop;
is_deeply([ noise() ], [], 'and nothing at the end');
done_testing();

# Runs the command; if the manager of `database` is there (and in a step, if the kind is busy), that is waited for first.
sub quick
{
	my ($command, $database, $kind) = @_;
	comes($database, "before $command", $kind) if $database;
	my $began = time;
	$session->query_safe($command);
	my $took = time - $began;
	push @times, $took;
	push @complaints, sprintf('%.1f s: %s', $took, $command) if $took >= $too_long;
	return;
}

# The manager of the database is there, and idle or in a step.
sub comes
{
	my ($database, $when, $kind) = @_;
	$kind //= $database;
	my $condition = $kind eq 'busy' ? q{xact_start IS NOT NULL AND wait_event = 'PgSleep'} : 'xact_start IS NULL';
	my $query = qq{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND datname = '$database' AND wait_event IS NOT NULL AND $condition};
	my $end = time + 20;
	while (time < $end)
	{
		return if $session->query_safe($query) eq '1';
		usleep(10_000);
	}
	push @complaints, "no $kind manager in $database: $when";
	die "@complaints" if @complaints > 2;
	return;
}

sub outcome
{
	my ($what) = @_;
	my @sorted = sort { $a <=> $b } @times;
	is_deeply(\@complaints, [], "$what: everything in time");
	cmp_ok($sorted[ @sorted / 2 ], '<', $usual, sprintf('%s: half of the %d commands took %.2f s at most', $what, scalar @sorted, $sorted[ @sorted / 2 ]));
	note(sprintf('the slowest took %.2f s', $sorted[-1]));
	@complaints = @times = ();
	return;
}

# What processes of jobq had to say beyond their start, and what the server said of them.
sub noise
{
	my @lines = split /\n/, slurp_file($node->logfile);
	return grep { /\] jobq|"jobq|FATAL|PANIC|ERROR/ && !/jobq manager LOG:  jobq manager started|jobq launcher LOG:  jobq launcher started|background worker "(jobq|logical replication) launcher" .* exited with exit code 1|(client backend FATAL:  terminating connection|autovacuum)/ } @lines;
}
