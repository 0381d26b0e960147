
# Schedules of each second through crashes at any moment, and through the promotion of a standby: every instant has one row and one job, none has two
# (promise 7, cases 1, 2, 51).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

srand 61;
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_line_prefix = '%m [%p] %b '");
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q');
	SELECT jobq.schedule_job('s' || n, '* * * * * *', 's' || n, queue => 'q', overlap => 'allow', catch_up => 'all') FROM generate_series(1, 20) n;
	SELECT jobq.schedule_job('i' || n, '1 second', 'i' || n, queue => 'q', overlap => 'allow', catch_up => 'all') FROM generate_series(1, 20) n;
});

sub is_whole
{
	my ($node, $what) = @_;
	is($node->safe_psql('postgres', q{
		SELECT count(*) FILTER (WHERE state <> 'enqueued'), count(*) FILTER (WHERE gap <> '1 s'), count(*) - count(DISTINCT (schedule, run_at))
		FROM (SELECT *, run_at - lag(run_at) OVER (PARTITION BY schedule ORDER BY run_at) AS gap FROM jobq.schedule_runs) r}), '0|0|0', "$what: each instant once, none missed");
	is($node->safe_psql('postgres', q{
		SELECT count(*) FROM (SELECT name, task, count(*) AS rows, (SELECT count(*) FROM jobq.job j WHERE j.task = r.name) AS jobs FROM jobq.schedule_run r JOIN jobq.schedule s USING (schedule_id, name)
			GROUP BY name, task) r WHERE rows <> jobs}), '0', "$what: a job for each, and no other");
	return;
}

for my $crash (1 .. 5)
{
	sleep 0.5 + rand;
	$primary->stop('immediate');
	$primary->start;
}
ok($primary->poll_query_until('postgres', q{SELECT count(*) FILTER (WHERE age < interval '1.5 s') = 40 FROM (SELECT clock_timestamp() - max(run_at) AS age FROM jobq.schedule_runs GROUP BY schedule) a}), 'all have caught up');
is_whole($primary, 'after five crashes');

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
sleep 1 + rand;
$primary->wait_for_catchup($standby);
$primary->stop('immediate');
my $fired = $standby->safe_psql('postgres', 'SELECT max(run_at) FROM jobq.schedule_runs');
sleep 1.5;
is($standby->safe_psql('postgres', 'SELECT max(run_at) FROM jobq.schedule_runs'), $fired, 'a standby fires nothing');
is($standby->safe_psql('postgres', q{SELECT count(*) FROM jobq.next_runs('@daily')}), '5', 'but tells instants');
$standby->promote;
ok($standby->poll_query_until('postgres', "SELECT count(DISTINCT schedule) = 40 FROM jobq.schedule_runs WHERE run_at > '$fired'::timestamptz + interval '3 s'"), 'promoted, it goes on');
is_whole($standby, 'after the promotion');
unlike(slurp_file($standby->logfile), qr/schedules of this database rest/, 'it is at home');
$standby->stop;
done_testing();
