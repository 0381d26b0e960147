
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
$node->stop;
done_testing();
