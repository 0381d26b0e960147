
# A manager steps aside for the command of somebody whom the server will let do it, and for nobody else; and it comes back when the
# command is over, in whatever way it ends (promise 10, cases 122, 123).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $deadline = 20;
my $too_long = 5; # the server gives up after five seconds

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'jobq'
allow_in_place_tablespaces = on
log_line_prefix = '%m [%p] %b '
});
$node->start;
my $watch = $node->background_psql('postgres');
$watch->set_query_timer_restart;
$watch->query_safe($_) for q{CREATE TABLESPACE elsewhere LOCATION ''}, 'CREATE ROLE low LOGIN', 'CREATE ROLE maker LOGIN CREATEDB',
	'CREATE ROLE owner LOGIN CREATEDB', 'GRANT CREATE ON TABLESPACE elsewhere TO owner, maker', 'CREATE DATABASE d OWNER owner';
$node->safe_psql('d', 'CREATE EXTENSION jobq');
my $manager = manager_of('d');
ok($manager, 'a manager');

# Who owns nothing has no power over it, even where the server notices that only in the end.
for my $role (qw(low maker))
{
	for my $command ('DROP DATABASE d', 'DROP DATABASE d WITH (FORCE)', 'ALTER DATABASE d RENAME TO e', 'ALTER DATABASE d SET TABLESPACE elsewhere',
		'CREATE DATABASE e TEMPLATE d')
	{
		my ($code, $out, $err) = $node->psql('postgres', $command, extra_params => [ '-U', $role ]);
		like($err, qr/must be owner|permission denied/, "$role: $command is refused");
	}
}
is(manager_now('d'), $manager, '... and the manager has not noticed');

# Nor what the server does not do in a transaction.
for my $command ('DROP DATABASE d', 'CREATE DATABASE e TEMPLATE d', 'ALTER DATABASE d SET TABLESPACE elsewhere')
{
	my ($code, $out, $err) = $node->psql('postgres', "BEGIN;\n$command;\nROLLBACK;");
	like($err, qr/cannot (run|be executed) inside a transaction block/, "$command in a transaction");
}
is(manager_now('d'), $manager, '... and the manager has not noticed');

# The owner needs no superuser.
is(command('owner', 'ALTER DATABASE d RENAME TO e'), '', 'its owner renames it');
ok(manager_of('e'), '... and the manager is back');
is(command('owner', 'CREATE DATABASE f TEMPLATE e'), '', 'its owner copies it');
ok(manager_of($_), "... and $_ has a manager") for qw(e f);
is(command('owner', 'ALTER DATABASE e SET TABLESPACE elsewhere'), '', 'its owner moves it');
ok(manager_of('e'), '... and the manager is back');
is(command('owner', 'DROP DATABASE f'), '', 'its owner drops it');

# A new name may be given in a transaction, and in a function.
for my $end (qw(COMMIT ROLLBACK))
{
	ok(manager_of('e'), "a manager before $end");
	is(command('owner', 'BEGIN', 'ALTER DATABASE e RENAME TO d', $end), '', "a new name, $end");
	my $name = $end eq 'COMMIT' ? 'd' : 'e';
	ok(manager_of($name), "... and the manager is back in $name");
	$watch->query_safe('ALTER DATABASE d RENAME TO e') if $end eq 'COMMIT';
}
ok(manager_of('e'), 'a manager before DO');
is(command('owner', q{DO $$ BEGIN EXECUTE 'ALTER DATABASE e RENAME TO d'; END $$}), '', 'a new name, in a DO block');
ok(manager_of('d'), '... and the manager is back');
is(command('owner', "SELECT 1\\; ALTER DATABASE d RENAME TO e"), '', 'a new name, in one message with something else');
ok(manager_of('e'), '... and the manager is back');
is(command('owner', 'BEGIN', 'SAVEPOINT s', 'ALTER DATABASE e RENAME TO d', 'ROLLBACK TO s', 'ALTER DATABASE e RENAME TO d', 'COMMIT'), '',
	'a new name, after it was taken back');
ok(manager_of('d'), '... and the manager is back');

# The server refuses in the end: there is somebody else.
my $guest = $node->background_psql('d');
my ($code, $out, $err) = $node->psql('postgres', 'DROP DATABASE d');
like($err, qr/is being accessed by other users.*There is 1 other session using the database/s, 'the manager is not counted among the other sessions');
ok(manager_of('d'), '... and it is back');
$guest->quit;

# A command that has the database and waits for something else is ended from outside.
my $lock = $node->background_psql('postgres');
$lock->set_query_timer_restart;
my %ends = (
	'cancelled' => sub { $watch->query_safe("SELECT pg_cancel_backend($_[0])") },
	'terminated' => sub { $watch->query_safe("SELECT pg_terminate_backend($_[0])") },
	'out of time' => sub { });
for my $command ('DROP DATABASE d', 'ALTER DATABASE d RENAME TO e', 'BEGIN; ALTER DATABASE d RENAME TO e', 'CREATE DATABASE e TEMPLATE d')
{
	for my $end (sort keys %ends)
	{
		ok(manager_of('d'), "$command, to be $end: a manager");
		$lock->query_safe('BEGIN; LOCK pg_database IN SHARE MODE');
		my $session = begin($end eq 'out of time' ? q{SET statement_timeout = '1s'} : (), $command);
		my $process = $session->{process};
		ok(comes_true("SELECT count(*) FROM pg_stat_activity WHERE pid = $process AND wait_event_type = 'Lock'"), '... the command waits') if $end ne 'out of time';
		is(manager_now('d'), '', '... without a manager') if $end ne 'out of time';
		$ends{$end}->($process);
		ok(fails($session), '... the command ends');
		ok(manager_of('d'), '... and the manager is back, while nothing else has changed');
		$lock->query_safe('ROLLBACK');
		finish($session);
	}
}

# A manager that does not answer: whoever waits for it can go.
for my $end (sort keys %ends)
{
	$manager = manager_of('d');
	kill 'STOP', $manager;
	my $session = begin($end eq 'out of time' ? q{SET statement_timeout = '1s'} : (), 'DROP DATABASE d');
	my $process = $session->{process};
	ok(comes_true("SELECT count(*) FROM pg_stat_activity WHERE pid = $process AND wait_event_type = 'Extension'"), 'DROP DATABASE waits for a manager') if $end ne 'out of time';
	my $began = time;
	$ends{$end}->($process);
	ok(fails($session), "... and is $end");
	cmp_ok(time - $began, '<', $too_long, '... at once');
	kill 'CONT', $manager;
	ok(comes_true("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND datname = 'd' AND pid <> $manager"), '... a manager is there');
	finish($session);
}

my @noise = grep { /\] jobq \w+ (ERROR|FATAL|WARNING|PANIC)|"jobq|PANIC|cannot / && !/client backend/ } split /\n/, slurp_file($node->logfile);
is_deeply(\@noise, [], 'nothing in the log of jobq');

$_->quit for $lock, $watch;
$node->stop;
done_testing();

# What psql complains of, or that it took too long.
sub command
{
	my ($role, @statements) = @_;
	my $began = time;
	my ($code, $out, $err) = $node->psql('postgres', join(";\n", @statements) . ';', extra_params => [ '-U', $role ]);
	return $err if $err ne '';
	return time - $began < $too_long ? '' : 'too long';
}

# A psql that says which process serves it, and whose session, if it lives, has nothing to do after the statements.
sub begin
{
	my ($in, $out, $err) = (join('', map { "$_;\n" } 'SELECT pg_backend_pid()', @_), '', '');
	my $psql = IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr('postgres') ], '<', \$in, '>', \$out, '2>', \$err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$psql->pump until $in eq '' && $out =~ /^(\d+)\n/;
	return { psql => $psql, process => $1, err => \$err };
}

sub fails
{
	my ($session) = @_;
	$session->{psql}->pump until ${ $session->{err} } =~ /ERROR|FATAL/;
	return 1;
}

sub finish
{
	my ($session) = @_;
	$watch->query_safe("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $session->{process}");
	$session->{psql}->kill_kill;
	return;
}

sub manager_now
{
	my ($database) = @_;
	return $watch->query_safe("SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND datname = '$database'");
}

# One that is there and rests.
sub manager_of
{
	my ($database) = @_;
	my $query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND datname = '$database' AND wait_event_type = 'Extension'";
	my $end = time + $deadline;
	while (time < $end)
	{
		my $process = $watch->query_safe($query);
		return $process if $process;
		usleep(10_000);
	}
	return '';
}

sub comes_true
{
	my ($query) = @_;
	my $end = time + $deadline;
	while (time < $end)
	{
		return 1 if $watch->query_safe($query) eq '1';
		usleep(10_000);
	}
	return 0;
}
