
# A schedule of each week keeps its instant over restarts, neither early nor twice; what somebody wrote into the rows is put right by the manager's look at
# them: an instant that is none, one that the time zone's rules no longer have (cases 51, 167).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\ntimezone = 'Asia/Kathmandu'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.schedule_job(n, '0 4 * * ' || (1 + extract(isodow FROM clock_timestamp() AT TIME ZONE 'Europe/Berlin')::int) % 7, n, timezone => 'Europe/Berlin')
	FROM unnest('{weekly,infinite,past,none,ahead,shifted}'::text[]) n;
});
my $instants = q{SELECT string_agg(DISTINCT next_run_at::text, ' ') FROM jobq.schedules};
my $next = $node->safe_psql('postgres', $instants);
like($next, qr/^\S+ \S+$/, 'all are due at one instant');
for my $mode (qw(fast immediate smart))
{
	$node->stop($mode);
	$node->start;
	$node->poll_query_until('postgres', q{SELECT swept FROM (SELECT ok AS swept FROM jobq.health() WHERE check_name = 'last sweep') h}) or die 'no manager';
	is($node->safe_psql('postgres', $instants), $next, "the same after a restart ($mode)");
}
$node->safe_psql('postgres', q{
	UPDATE jobq.schedule SET next_run_at = 'infinity' WHERE name = 'infinite';
	UPDATE jobq.schedule SET next_run_at = '-infinity' WHERE name = 'past';
	UPDATE jobq.schedule SET next_run_at = NULL WHERE name = 'none';
	UPDATE jobq.schedule SET handled_until = 'infinity' WHERE name = 'ahead';
	UPDATE jobq.schedule SET next_run_at = next_run_at + interval '1 h' WHERE name = 'shifted';
	SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'jobq manager';
});
ok($node->poll_query_until('postgres', qq{SELECT count(*) = 6 AND bool_and(isfinite(handled_until)) FROM jobq.schedule WHERE next_run_at = '$next'}), 'wrong rows are put right');
is($node->safe_psql('postgres', 'SELECT count(*) FROM jobq.schedule_runs'), '0', 'nothing has fired');

# What became of instants goes with its job, and no sooner; what still waits stays.
$node->safe_psql('postgres', q{
	SELECT jobq.create_queue('q');
	SELECT jobq.schedule_job('kept', '* * * * * *', 'kept', queue => 'q', overlap => 'queue');
});
ok($node->poll_query_until('postgres', q{SELECT count(DISTINCT state) = 3 FROM jobq.schedule_runs WHERE schedule = 'kept'}), 'one is enqueued, one waits, others are skipped');
my $mark = $node->safe_psql('postgres', q{
	UPDATE jobq.schedule_run SET prune_at = '2000-01-01';
	SELECT max(run_at) FROM jobq.schedule_run;
});
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'jobq manager'});
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM jobq.schedule_runs WHERE state = 'skipped' AND run_at <= '$mark'"), 'what was kept long enough goes');
is($node->safe_psql('postgres', "SELECT string_agg(state, ' ' ORDER BY run_at), bool_and(prune_at > clock_timestamp() + interval '23 h') FROM jobq.schedule_run WHERE run_at <= '$mark'"),
	'enqueued waiting|t', 'but not of a job that is there, nor of an instant that waits');
$node->safe_psql('postgres', q{SELECT jobq.complete(job_id, attempt) FROM jobq.claim('q')});
ok($node->poll_query_until('postgres', "SELECT count(job_id) = 2 FROM jobq.schedule_runs WHERE state = 'enqueued' AND run_at <= '$mark'"), 'which has its job in the end');
$node->stop;
done_testing();
