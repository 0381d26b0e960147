
# Two hundred schedules of each second: every instant has its row and its job. Two hundred that were forgotten for three days are caught up with within
# their bounds, and hold up no other (cases 11, 96).
#
# JOBQ_SECONDS: how long.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $seconds = $ENV{JOBQ_SECONDS} || 8;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.schedule_job('s' || n, '* * * * * *', 's' || n, overlap => 'allow') FROM generate_series(1, 200) n;
});
sleep $seconds;
$node->safe_psql('postgres', q{SELECT jobq.pause_schedule(schedule) FROM jobq.schedules});
is($node->safe_psql('postgres', qq{SELECT count(*), bool_and(n >= $seconds) FROM (SELECT count(*) AS n FROM jobq.schedule_runs GROUP BY schedule) r}), '200|t', 'all have fired as long');
is($node->safe_psql('postgres', q{
	SELECT count(*) FILTER (WHERE gap <> '1 s'), count(*) FILTER (WHERE state = 'missed' AND reason <> 'the schedule was paused') FROM
		(SELECT *, run_at - lag(run_at) OVER (PARTITION BY schedule ORDER BY run_at) AS gap FROM jobq.schedule_runs) r}), '0|0', 'each instant has a row, and none was missed');
is($node->safe_psql('postgres', q{SELECT count(*) FROM jobq.schedule_runs WHERE state = 'enqueued'}), $node->safe_psql('postgres', 'SELECT count(*) FROM jobq.job'), 'a job for each');
note('instant to job, p50 and p95 in ms: ' . $node->safe_psql('postgres', q{
	SELECT percentile_cont('{0.5,0.95}'::float[]) WITHIN GROUP (ORDER BY extract(epoch FROM noted_at - run_at) * 1000) FROM jobq.schedule_runs WHERE state = 'enqueued'}));

$node->safe_psql('postgres', q{
	SELECT jobq.purge_queue('default');
	SELECT jobq.schedule_job('m' || n, '* * * * *', 'm' || n, overlap => 'allow', catch_up => (ARRAY['none', 'once', 'all'])[1 + n % 3]) FROM generate_series(1, 200) n;
	SELECT jobq.schedule_job('other', '* * * * * *', 'other', overlap => 'allow');
	UPDATE jobq.schedule SET created_at = clock_timestamp() - interval '3 days', handled_until = clock_timestamp() - interval '3 days', next_run_at = clock_timestamp() - interval '3 days' WHERE name ~ '^m';
	SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'jobq manager';
});
ok($node->poll_query_until('postgres', q{SELECT count(*) = 200 FROM jobq.schedules WHERE schedule ~ '^m' AND next_run_at > clock_timestamp()}), 'all are caught up with');
is($node->safe_psql('postgres', q{
	SELECT string_agg(DISTINCT catch_up || ' ' || jobs, ', ' ORDER BY catch_up || ' ' || jobs) FROM jobq.schedule s,
		LATERAL (SELECT least(count(*) FILTER (WHERE state = 'enqueued' AND noted_at - run_at > '70 s'), 98) AS jobs FROM jobq.schedule_run r WHERE r.schedule_id = s.schedule_id) r WHERE name ~ '^m'}),
	'all 98, none 0, once 0', 'within their bounds');
is($node->safe_psql('postgres', q{SELECT count(*) FROM jobq.schedule_run r JOIN jobq.schedule s USING (schedule_id) WHERE r.name ~ '^m' GROUP BY schedule_id HAVING count(*) > 103}), '', 'and so are the rows');
my $last = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
ok($node->poll_query_until('postgres', qq{SELECT count(*) > 1 FROM jobq.schedule_runs WHERE schedule = 'other' AND state = 'enqueued' AND run_at > '$last'}), 'another one fires on');
$node->stop;
done_testing();
