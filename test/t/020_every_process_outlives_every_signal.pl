
# Launcher and manager, each signal, idle and in the middle of a step: a signal that asks for something small changes nothing, a
# terminated process is back within seconds, a killed one takes the server through a recovery that both come out of; and each time the work
# goes on (promise 10, cases 104 and 166).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'jobq'
	log_statement = none
	restart_after_crash = on
	jobq.sweep_grace = '0'
	jobq.database_scan_interval = '1 s'
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', lease => '1 s', max_crashes => 1);
	CREATE FUNCTION public.pid_of(kind text) RETURNS int LANGUAGE sql AS $$SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq ' || kind$$;
	-- The process, as soon as it waits for a lock: then it is in a step. The view would wait for the lock too.
	CREATE FUNCTION public.catch(kind text) RETURNS int LANGUAGE plpgsql AS $$
	DECLARE
		caught int;
	BEGIN
		FOR i IN 1 .. 10000 LOOP
			PERFORM pg_stat_clear_snapshot();
			SELECT pid INTO caught FROM pg_stat_get_activity(NULL)
			WHERE backend_type = 'jobq ' || kind AND wait_event_type = 'Lock' AND xact_start IS NOT NULL;
			EXIT WHEN caught IS NOT NULL;
			PERFORM pg_sleep(0.003);
		END LOOP;
		RETURN caught;
	END $$;
});

sub pid_of { return $node->safe_psql('postgres', "SELECT public.pid_of('$_[0]')") }

sub both_are_there
{
	return $node->poll_query_until('postgres', "SELECT string_agg(backend_type, ' ' ORDER BY backend_type) FROM pg_stat_activity WHERE backend_type LIKE 'jobq%'",
		'jobq launcher jobq manager');
}

# A delayed job becomes ready. A job whose worker died is looked for at the end.
my $deaths = 0;

sub work_goes_on
{
	my ($what) = @_;
	$node->safe_psql('postgres', "SELECT jobq.enqueue('due', queue => 'q', delay => '1 ms')");
	ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM jobq.delayed'), "$what: a delayed job becomes ready");
	$deaths += $node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('q', 100)");
	return;
}

# The right one is there, and it works.
sub check
{
	my ($what, $kind, $pid, $is_new) = @_;
	if ($is_new)
	{
		ok($node->poll_query_until('postgres', "SELECT public.pid_of('$kind') <> $pid"), "$what: there is a new one");
	}
	else
	{
		is(pid_of($kind), $pid, "$what: it stays");
	}
	both_are_there() or die "$what: jobq's processes are not there";
	work_goes_on($what);
	return;
}

ok(both_are_there(), 'a launcher and a manager');
work_goes_on('at first');

my $locker = $node->background_psql('postgres');
my $sender = $node->background_psql('postgres');
my %send = (
	(map { my $signal = $_; $signal => sub { kill $signal, $_[0] } } qw(INT HUP USR1 USR2 TERM)),
	(map { my $function = $_; $function => sub { $sender->query_safe("SELECT $function($_[0])") } } qw(pg_cancel_backend pg_terminate_backend)));

# The launcher looks at the databases every second; nobody can connect while it is held up there. The manager is held up where it puts a
# job into its new line.
sub catch_in_step
{
	my ($kind) = @_;
	$locker->query_safe('BEGIN; LOCK TABLE ' . ($kind eq 'launcher' ? 'pg_catalog.pg_database' : 'jobq.ready') . ' IN ACCESS EXCLUSIVE MODE');
	$sender->query_safe("SELECT jobq.enqueue('due', queue => 'q', delay => '1 ms')") if $kind eq 'manager';
	return $sender->query_safe("SELECT public.catch('$kind')");
}

for my $kind (qw(launcher manager))
{
	for my $way (sort keys %send)
	{
		my $is_new = $way =~ /term/i;
		my $pid = pid_of($kind);
		$send{$way}->($pid);
		check("$way, $kind at rest", $kind, $pid, $is_new);
		next if $kind eq 'launcher' && $way !~ /HUP|TERM|cancel/;

		$pid = pid_of($kind);
		is(catch_in_step($kind), $pid, "$kind in a step");
		$send{$way}->($pid);
		$locker->query_safe('ROLLBACK');
		check("$way, $kind in a step", $kind, $pid, $is_new);
	}
}
$_->quit for $locker, $sender;

# What administrators do before they drop or restore something.
my $pid = pid_of('manager');
$node->safe_psql('postgres', 'SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()');
check('all connections of the database terminated', 'manager', $pid, 1);
$pid = pid_of('launcher');
kill 'TERM', $pid, pid_of('manager');
check('both terminated at once', 'launcher', $pid, 1);

# A pause that the processes know nothing of.
my @pids = map { pid_of($_) } qw(launcher manager);
kill 'STOP', @pids;
$node->safe_psql('postgres', "SELECT jobq.enqueue('due', queue => 'q', delay => '1 ms')");
kill 'CONT', @pids;
check('stopped for a while', 'manager', $pids[1], 0);

my @bad = grep { /^\S+ \S+ \S+ \[\d+\] (ERROR|FATAL|PANIC|WARNING):/ } split /\n/, slurp_file($node->logfile);
is("@bad", '', 'and none of that is an error in the log');

# These take the server down; it comes back by itself.
for my $kind (qw(launcher manager))
{
	for my $signal (qw(QUIT KILL))
	{
		for my $step (0, 1)
		{
			my $what = "$signal, $kind " . ($step ? 'in a step' : 'at rest');
			my $from = -s $node->logfile;
			($locker, $sender) = map { $node->background_psql('postgres') } 1 .. 2 if $step;
			my $pid = $step ? catch_in_step($kind) : pid_of($kind);
			kill $signal, $pid;
			$node->wait_for_log(qr/database system is ready to accept connections/, $from);
			eval { $_->quit } for $step ? ($locker, $sender) : ();
			check($what, $kind, $pid, 1);
		}
	}
}

ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM jobq.lease'), 'the sweep went on all the time');
cmp_ok($deaths, '>=', 30, 'there was something to sweep');
is($node->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE state = 'dead' AND reason = 'crashed 1 times' AND attempt = 1) FROM jobq.history"),
	"$deaths|$deaths", 'each lease expired once');
is($node->safe_psql('postgres', 'SELECT count(*) FROM jobq.jobs'), '0', 'no job was lost on the way');
$node->stop;
done_testing();
