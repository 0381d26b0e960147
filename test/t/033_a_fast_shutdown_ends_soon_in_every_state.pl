
# pg_ctl stop -m fast ends soon, whatever launcher, manager and workers are doing, and the server starts again with a manager (promise 10,
# case 111).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $too_long = 10;
my $deadline = 30;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'jobq'
log_line_prefix = '%m [%p] %b '
wal_sender_timeout = 60s
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	CREATE FUNCTION public.slow(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1); RETURN $1; END';
	SELECT jobq.create_queue('q', lease => '1 s', retry_base => '0', max_crashes => 100);
});
my $waits_for = q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND };

stops('idle', "$waits_for xact_start IS NULL AND wait_event_type = 'Extension'");

# In the middle of a sweep, of a promotion and of pruning: a step of a thousand rows, a second each.
$node->safe_psql('postgres', q{
	SELECT count(*) FROM jobq.enqueue_batch('expired', (SELECT jsonb_agg(n) FROM generate_series(1, 1000) n), queue => 'q');
	SELECT count(*) FROM jobq.claim('q', 1000);
	CREATE INDEX slow ON jobq.ready (public.slow(job_id));
});
stops('mid-sweep', "$waits_for wait_event = 'PgSleep'", sub { is($node->safe_psql('postgres', q{SELECT count(*) FROM jobq.failures}), '0', 'mid-sweep: no half of it') });
$node->safe_psql('postgres', q{DROP INDEX jobq.slow; SELECT jobq.drop_queue('q', force => true); SELECT jobq.create_queue('q')});

# Workers that wait for a job.
my @sleepers = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 5;
$_->query_until(qr/waiting/, "\\echo waiting\nCALL jobq.wait('q', '10 min');\n") for @sleepers;
stops('workers in wait', q{SELECT count(*) = 5 FROM pg_stat_activity WHERE query ~ 'CALL jobq.wait' AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND wait_event_type = 'Extension'});
eval { $_->quit } for @sleepers;

# A manager that waits for a lock, on a table and on the extension.
for my $lock ('LOCK TABLE jobq.delayed', 'DROP EXTENSION jobq')
{
	$node->safe_psql('postgres', q{SELECT count(jobq.enqueue('due', delay => n * interval '0.2 s')) FROM generate_series(1, 200) n});
	my $holder = $node->background_psql('postgres', on_error_stop => 0);
	$holder->query_safe("SET client_min_messages = warning; BEGIN; $lock");
	stops("a manager waits, $lock", "$waits_for wait_event_type = 'Lock'");
	eval { $holder->quit };
	$node->safe_psql('postgres', q{SELECT jobq.purge_queue('default')});
}

# What the manager's commits wait for, also after it has sent a notification.
$node->safe_psql('postgres', q{
	CREATE FUNCTION public.say(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS
		$$BEGIN RAISE LOG 'commits with %', current_setting('synchronous_commit'); RETURN $1; END$$;
	CREATE INDEX say ON jobq.ready (public.say(job_id));
	SELECT jobq.enqueue('said', queue => 'q', delay => '10 ms');
});
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM jobq.jobs WHERE task = 'said' AND state = 'ready'}), 'a job is promoted');
my ($wait) = slurp_file($node->logfile) =~ /jobq manager LOG:  commits with (\w+)/;
is($wait, 'local', 'the manager commits with local');
$node->safe_psql('postgres', 'DROP INDEX jobq.say');

# A standby that is gone: commits wait for it, those of the manager do not.
$node->append_conf('postgresql.conf', qq{synchronous_standby_names = 'gone'\nsynchronous_commit = remote_apply});
$node->reload;
my $producer = $node->background_psql('postgres', on_error_stop => 0);
my $in_vain = q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'};
$producer->query_until(qr/enqueueing/, "\\echo enqueueing\nSELECT jobq.enqueue('waits for the standby', queue => 'q') FROM pg_sleep(0.1), generate_series(1, 10);\n" x 10);
ok($node->poll_query_until('postgres', $in_vain), 'a producer waits for the standby');
$node->safe_psql('postgres', q{SET synchronous_commit = local; SELECT jobq.enqueue('while the standby is gone', queue => 'q', delay => '1 ms')});
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM jobq.jobs WHERE task = 'while the standby is gone' AND state = 'ready'}),
	'the manager promotes meanwhile');
stops('no standby', $in_vain);
eval { $producer->quit };

my $log = slurp_file($node->logfile);
unlike($log, qr/\] jobq \w+ (ERROR|FATAL|PANIC|WARNING)|"jobq manager" .*exited/, 'nothing in the log of jobq');
$node->stop;
done_testing();

# Waits for the state, stops the server, starts it again.
sub stops
{
	my ($state, $query, $check) = @_;
	my $session = $node->background_psql('postgres');
	my $end = time + $deadline;
	my $is_there = 0;
	while (!$is_there && time < $end)
	{
		$is_there = $session->query_safe($query) =~ /^([1-9]|t)/;
		usleep(20_000);
	}
	$session->quit;
	ok($is_there, "$state: it is so");
	my $began = time;
	$node->stop('fast');
	my $took = time - $began;
	cmp_ok($took, '<', $too_long, sprintf('%s: the server stopped in %.1f s', $state, $took));
	$node->start;
	ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'jobq manager'}), "$state: and comes back with a manager");
	$check->() if $check;
	return;
}
