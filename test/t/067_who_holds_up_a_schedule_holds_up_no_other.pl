
# A manager that is stopped over many instants, a schedule that somebody has locked, a queue that somebody drops, a server that only reads: what could not
# fire is dealt with afterwards, by the schedule's policy, and nobody else waits (promise 6, cases 166, 119).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_line_prefix = '%m [%p] %b '");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('held');
	SELECT jobq.schedule_job(n, '* * * * * *', n, overlap => 'allow', catch_up => 'all', queue => CASE n WHEN 'queue' THEN 'held' ELSE 'default' END) FROM unnest('{free,row,queue}'::text[]) n;
	SELECT jobq.schedule_job('held ' || n, '* * * * * *', 't', overlap => 'allow', catch_up => 'all', queue => 'held') FROM generate_series(1, 15) n;
	SELECT jobq.schedule_job('none', '* * * * * *', 'none', overlap => 'allow', catch_up => 'none');
});
my $fires = sub {
	my ($after, @names) = @_;
	my $names = join ',', @names;
	return $node->poll_query_until('postgres', "SELECT count(DISTINCT schedule) = " . @names . " FROM jobq.schedule_runs WHERE run_at > '$after' AND state = 'enqueued' AND schedule = ANY ('{$names}')");
};
my $now = sub { return $node->safe_psql('postgres', "SELECT clock_timestamp() + interval '1 s'") };
my $gaps = q{SELECT count(*) FROM (SELECT run_at - lag(coalesce(until, run_at)) OVER (PARTITION BY schedule ORDER BY run_at) AS gap FROM jobq.schedule_runs) r WHERE gap <> '1 s'};
ok($fires->('2000-01-01', qw(free row queue none)), 'all fire');

my $holder = $node->background_psql('postgres');
$holder->query_safe(q{BEGIN; SELECT jobq.alter_schedule('row', priority => 1)});
my $dropper = $node->background_psql('postgres');
$dropper->query_safe(q{BEGIN; SELECT jobq.drop_queue('held', force => true)});
my $held_at = $now->();
ok($fires->($held_at, qw(free none)), 'others fire while a schedule and a queue are held');
sleep 1.5;
is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.schedule_runs WHERE run_at > '$held_at' AND schedule IN ('row', 'queue')"), '0', 'those that are held do not');
$holder->query_safe('COMMIT');
$dropper->query_safe('ROLLBACK');
$_->quit for $holder, $dropper;
ok($fires->($now->(), qw(free row queue none)), 'then all fire');
is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.schedule_runs WHERE state <> 'enqueued'"), '0', 'and nothing was missed');
is($node->safe_psql('postgres', $gaps), '0', 'each instant has its row');

my $manager = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq manager'});
kill 'STOP', $manager;
sleep 13;
kill 'CONT', $manager;
ok($fires->($now->(), qw(free row queue none)), 'a manager that stood still goes on');
is($node->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE schedule <> 'none'), count(*) FILTER (WHERE schedule = 'none') BETWEEN 1 AND 4 FROM jobq.schedule_runs WHERE state = 'missed'}), '0|t',
	'what was late by more than ten seconds is missed, or made up for, by policy');
is($node->safe_psql('postgres', $gaps), '0', 'each instant has its row again');

$node->safe_psql('postgres', 'ALTER SYSTEM SET default_transaction_read_only = on; SELECT pg_reload_conf()');
ok($node->poll_query_until('postgres', q{SELECT clock_timestamp() - max(run_at) > interval '2.2 s' FROM jobq.schedule_runs}), 'on a server that only reads nothing fires');
$node->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only; SELECT pg_reload_conf()');
ok($fires->($now->(), qw(free row queue none)), 'and then it does');
is($node->safe_psql('postgres', $gaps), '0', 'each instant has its row');
unlike(slurp_file($node->logfile), qr/jobq manager \w+:  .*(ERROR|cannot fire)/, 'no word of trouble');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND (xact_start IS NOT NULL AND state = 'idle in transaction')}), '0', 'no transaction stays open');
$node->stop;
done_testing();
