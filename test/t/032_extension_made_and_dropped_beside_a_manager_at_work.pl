
# CREATE and DROP EXTENSION many times, by all the ways there are to drop it, beside a manager that is at work: nobody waits for long,
# nothing is a deadlock, what was rolled back has not happened, and after the last drop there is nothing left, nor a process (promise 10,
# cases 116, 117).
#
# JOBQ_ROUNDS: how often.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $rounds = $ENV{JOBQ_ROUNDS} || 60;
my $deadline = 20;
my $too_long = 5;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'jobq'
deadlock_timeout = '100ms'
log_line_prefix = '%m [%p] %b '
});
$node->start;
$node->safe_psql('postgres', q{CREATE ROLE maker SUPERUSER; CREATE DATABASE d; CREATE DATABASE quiet});
my $watch = $node->background_psql('postgres');
$watch->set_query_timer_restart;
my $session = $node->background_psql('d', on_error_stop => 0);
$session->set_query_timer_restart;
$session->query_safe('SET client_min_messages = warning');

# Jobs of all kinds for a manager: due soon, with an expired lease, to be pruned, listened for.
my $load = q{
	SELECT jobq.create_queue('q', lease => '1 s', retry_base => '0', max_crashes => 100, keep_completed => '1 ms');
	SELECT count(*) FROM jobq.enqueue_batch('soon', (SELECT jsonb_agg(n) FROM generate_series(1, 300) n), queue => 'q', delay => '1 ms');
	SELECT count(*) FROM jobq.enqueue_batch('now', (SELECT jsonb_agg(n) FROM generate_series(1, 300) n), queue => 'q');
	SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('q', 100);
	SELECT count(*) FROM jobq.claim('q', 200);
	UPDATE jobq.lease SET expires_at = clock_timestamp();
	UPDATE jobq.delayed SET run_at = clock_timestamp() + random() * interval '50 ms';
};

my @drops = (
	'DROP EXTENSION jobq',
	'DROP SCHEMA jobq CASCADE',
	'DROP OWNED BY maker',
	'BEGIN; DROP EXTENSION jobq; COMMIT',
	'BEGIN; DROP EXTENSION jobq; CREATE EXTENSION jobq; DROP EXTENSION jobq; COMMIT');
my @complaints;
timed('CREATE EXTENSION jobq');
comes_up('the first');
for my $round (1 .. $rounds)
{
	timed($load);
	usleep(1000 * ($round % 20)); # another point of the manager's work each time
	if ($round % 3 == 0)
	{
		timed("BEGIN; $_; ROLLBACK") for 'DROP EXTENSION jobq', 'DROP SCHEMA jobq CASCADE';
		$session->query_safe(q{SELECT jobq.enqueue('after the rollback', delay => '1 ms')});
		push @complaints, "$round: after ROLLBACK the manager does not work"
			unless comes_true(sub { $session->query_safe(q{SELECT count(*) FROM jobq.jobs WHERE task = 'after the rollback' AND state = 'ready'}) });
	}
	my $drop = $drops[ $round % @drops ];
	timed($drop);
	timed($round % 2 ? 'CREATE EXTENSION jobq' : 'SET ROLE maker; CREATE EXTENSION jobq; RESET ROLE') if $session->query_safe(q{SELECT count(*) FROM pg_extension WHERE extname = 'jobq'}) eq '0';
	comes_up("round $round") if $round % 10 == 0;
}
is_deeply(\@complaints, [], "$rounds rounds: nobody waits for long, and the manager is there");
is($session->query_safe(q{SELECT count(*) FROM jobq.job}), '0', 'the last extension is empty');
timed('DROP EXTENSION jobq');
is($watch->query_safe(q{SELECT count(*) FROM pg_locks WHERE NOT granted}), '0', 'nobody waits');
ok(comes_true(sub { 1 - $watch->query_safe(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ 'jobq (manager|executor)'}) }),
	'after the last DROP there is no process left');
is($session->query_safe(q{SELECT count(*) FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace('jobq')}), '0',
	'... and nothing in the schema, which the server leaves');

# What is rolled back starts nothing. A manager elsewhere, asked for later, shows that the launcher has heard of everything before.
my $started = managers_started('d');
for my $round (1 .. 5)
{
	timed('BEGIN; CREATE EXTENSION jobq; ROLLBACK');
	timed('BEGIN; SAVEPOINT s; CREATE EXTENSION jobq; ROLLBACK TO s; COMMIT') if $round % 2;
}
$node->safe_psql('quiet', 'CREATE EXTENSION jobq');
ok(comes_true(sub { managers_started('quiet') }), 'CREATE EXTENSION brings a manager');
is(managers_started('d'), $started, '... ROLLBACK of it does not');

# As before DROP EXTENSION the manager works after it.
$node->safe_psql('quiet', 'BEGIN; DROP EXTENSION jobq; ROLLBACK');
$node->safe_psql('quiet', q{SELECT jobq.enqueue('a', delay => '1 ms')});
ok(comes_true(sub { $node->safe_psql('quiet', q{SELECT count(*) FROM jobq.jobs WHERE state = 'ready'}) }), 'ROLLBACK of DROP EXTENSION leaves it at work');
is(managers_started('quiet'), 1, '... the same one');
is_deeply(\@complaints, [], 'nobody waited for long');

# The last word of whoever drops and creates in one transaction.
$session->query_safe('CREATE EXTENSION jobq');
$session->query_safe('BEGIN; DROP EXTENSION jobq; CREATE EXTENSION jobq; COMMIT');
comes_up('dropped and made in one transaction');
$session->query_safe('BEGIN; CREATE EXTENSION IF NOT EXISTS jobq; DROP EXTENSION jobq; COMMIT');
ok(comes_true(sub { 1 - $watch->query_safe(q{SELECT count(*) FROM pg_stat_activity WHERE datname = 'd' AND backend_type = 'jobq manager'}) }),
	'the manager goes with the extension');
is_deeply(\@complaints, [], 'and it came before');

my $log = slurp_file($node->logfile);
unlike($log, qr/deadlock/, 'no deadlock');
unlike($log, qr/\] jobq \w+ (ERROR|FATAL|PANIC|WARNING)|"jobq manager" .*exited/, 'nothing in the log of jobq');
# It gives way to a transaction that holds the extension for 100 ms.
unlike($log, qr/jobq manager: cannot(?!.*\(55P03\))/, 'no step failed');
is($session->{stderr}, '', 'no error in the session');
$_->quit for $session, $watch;
$node->stop;
done_testing();

sub timed
{
	my ($statement) = @_;
	my $began = time;
	$session->query($statement);
	my $took = time - $began;
	push @complaints, sprintf('%.1f s: %s', $took, $statement) if $took >= $too_long;
	if ($session->{stderr} ne '')
	{
		push @complaints, "$statement: $session->{stderr}";
		$session->{stderr} = '';
	}
	return;
}

sub comes_up
{
	my ($when) = @_;
	push @complaints, "no manager: $when"
		unless comes_true(sub { $watch->query_safe(q{SELECT count(*) FROM pg_stat_activity WHERE datname = 'd' AND backend_type = 'jobq manager' AND wait_event_type = 'Extension'}) });
	return;
}

sub comes_true
{
	my ($question) = @_;
	my $end = time + $deadline;
	while (time < $end)
	{
		return 1 if $question->() == 1;
		usleep(20_000);
	}
	return 0;
}

sub managers_started
{
	my ($database) = @_;
	my $log = slurp_file($node->logfile);
	my @found = $log =~ /jobq manager started for database "$database"/g;
	return scalar @found;
}
