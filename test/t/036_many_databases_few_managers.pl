
# Of many databases only those with the extension have a manager, and finding out which costs little; new ones are found, templates and
# closed databases are left alone (promise 10, cases 124, 126).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $deadline = 30;

# At debug1 the server says which background worker it starts.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'jobq'
max_worker_processes = 40
log_line_prefix = '%m [%p] %b '
log_min_messages = debug1
});
$node->start;
my $watch = session();
$watch->query_safe("CREATE DATABASE d$_") for 1 .. 20;
my @ours = qw(d3 d8 d20);
$node->safe_psql($_, 'CREATE EXTENSION jobq') for @ours;
managers(\@ours, 'three of twenty databases have the extension');
$watch->quit;

# A start of the server: each database is looked into once, one at a time.
my $before = starts();
$node->restart;
$watch = session();
managers(\@ours, 'after a restart');
ok(comes_true(sub { starts() - $before >= 21 }), 'each database is looked into');
quiet();
is(starts() - $before, 21, '... once');

# Whatever wakes the launcher later is no reason to look into them again.
$before = starts();
$watch->query_safe(q{SELECT pg_reload_conf()}) for 1 .. 5;
$watch->query_safe($_) for 'CREATE DATABASE x', 'ALTER DATABASE x RENAME TO y', 'ALTER DATABASE y CONNECTION LIMIT 10', 'DROP DATABASE y';
$node->safe_psql('d4', 'CREATE EXTENSION jobq');
push @ours, 'd4';
managers(\@ours, 'CREATE EXTENSION in a fourth');
quiet();
cmp_ok(starts() - $before, '<=', 5, 'for a new extension and a new database that is renamed nothing else is looked into');

# Gone with DROP EXTENSION, and one that is killed comes back: no more than one start for each.
$before = starts();
$node->safe_psql('d3', 'DROP EXTENSION jobq');
@ours = grep { $_ ne 'd3' } @ours;
managers(\@ours, 'DROP EXTENSION');
$watch->query_safe(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'd8' AND backend_type = 'jobq manager'});
managers(\@ours, 'a manager is terminated');
quiet();
cmp_ok(starts() - $before, '<=', 2, 'which is no reason either');

# A template with the extension.
$node->safe_psql('template1', 'CREATE EXTENSION jobq');
$node->command_ok([ 'createdb', '-h', $node->host, '-p', $node->port, "new$_" ], "createdb new$_") for 1 .. 5;
push @ours, map { "new$_" } 1 .. 5;
managers(\@ours, 'each database made from template1 has a manager, template1 has none');
$node->safe_psql('new1', q{SELECT jobq.enqueue('a', delay => '1 ms')});
ok($node->poll_query_until('new1', q{SELECT count(*) = 1 FROM jobq.jobs WHERE state = 'ready'}), '... which works');
$watch->query_safe("CREATE DATABASE from0 TEMPLATE template0");
$watch->query_safe("CREATE DATABASE again TEMPLATE new2 STRATEGY file_copy");
push @ours, 'again';
managers(\@ours, 'by copying files, too');
$watch->query_safe('DROP DATABASE again');
@ours = grep { $_ ne 'again' } @ours;

# Marked as a template or closed, it loses its manager; and has it back.
for my $change ('IS_TEMPLATE true', 'ALLOW_CONNECTIONS false')
{
	my ($word, $value) = split / /, $change;
	$watch->query_safe("ALTER DATABASE d8 $change");
	managers([ grep { $_ ne 'd8' } @ours ], $change);
	$watch->query_safe('CREATE DATABASE copy TEMPLATE d8');
	managers([ 'copy', grep { $_ ne 'd8' } @ours ], "$change: its copy has one");
	$watch->query_safe('DROP DATABASE copy');
	$watch->query_safe("ALTER DATABASE d8 $word " . ($value eq 'true' ? 'false' : 'true'));
	managers(\@ours, "$change is taken back");
}
$watch->query_safe('ALTER DATABASE d8 IS_TEMPLATE true');
$watch->quit;
$node->restart;
$watch = session();
managers([ grep { $_ ne 'd8' } @ours ], 'a template after a restart');
ok(comes_true(sub { $watch->query_safe(q{SELECT count(*) = 0 FROM pg_stat_activity WHERE datname IN ('template0', 'template1', 'd8')}) eq 't' }), 'nobody is in a template');

my $log = slurp_file($node->logfile);
unlike($log, qr/no free background worker slot/, 'no lack of places');
unlike($log, qr/\] jobq \w+ (ERROR|FATAL|PANIC|WARNING)/, 'nothing in the log of jobq');
unlike($log, qr/"jobq manager" \(PID \d+\) exited with exit code [1-9]/, 'no manager failed');
$watch->quit;
$node->stop;
done_testing();

sub session
{
	my $session = $node->background_psql('postgres');
	$session->set_query_timer_restart;
	return $session;
}

# In the end these databases have a manager each that rests, and no others.
sub managers
{
	my ($databases, $what) = @_;
	my $expected = join ' ', sort @$databases;
	my $found;
	ok(comes_true(sub {
		$found = $watch->query_safe(q{SELECT coalesce(string_agg(datname, ' ' ORDER BY datname COLLATE "C"), '') FROM pg_stat_activity
			WHERE backend_type = 'jobq manager' AND wait_event_type = 'Extension'});
		return $found eq $expected }), "managers: $what") or diag("$found, not $expected");
	return;
}

# Nobody has started or is starting: as many have come as were registered.
sub quiet
{
	my $last = -1;
	my $same = 0;
	comes_true(sub {
		my $now = starts();
		$same = $now == $last ? $same + 1 : 0;
		$last = $now;
		return $same >= 10;
	});
	return;
}

sub starts
{
	my $log = slurp_file($node->logfile);
	my @found = $log =~ /starting background worker process "jobq manager"/g;
	return scalar @found;
}

sub comes_true
{
	my ($question) = @_;
	my $end = time + $deadline;
	while (time < $end)
	{
		return 1 if $question->();
		usleep(50_000);
	}
	return 0;
}
