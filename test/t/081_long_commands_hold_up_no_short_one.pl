
# Four schedules whose commands take 25, 55, 85 and 300 sixtieths of the time between two instants, and places for all: each runs when it is due, whatever the
# others do (case 77). An instant at which the last run still goes on is skipped, as the schedule says. JOBQ_MINUTE: how many seconds stand for a minute (2;
# by hand 60, six minutes and a half).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $minute = $ENV{JOBQ_MINUTE} || 2;
my $minutes = 6;
my $expression = $minute == 60 ? '* * * * *' : "*/$minute * * * * *";
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\njobq.sql_workers = 8\nmax_worker_processes = 16");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION jobq; CREATE ROLE ann LOGIN IN ROLE jobq_scheduler');
my @lengths = (25, 55, 85, 300);
$node->safe_psql('postgres', join ';', map { "SELECT jobq.schedule('of $_', '$expression', 'SELECT pg_sleep($_ / 60.0 * $minute)', run_as => 'ann')" } @lengths);
$node->safe_psql('postgres', "SELECT pg_sleep(($minutes + 0.5) * $minute)");
$node->safe_psql('postgres', join ';', map { "SELECT jobq.pause_schedule('of $_')" } @lengths);
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM jobq.jobs') or die 'they do not end';

my $runs = "SELECT r.schedule, r.run_at, r.state, s.claimed_at, s.state AS outcome FROM jobq.schedule_runs r LEFT JOIN jobq.sql_jobs s USING (job_id)";
is($node->safe_psql('postgres', "SELECT count(*) FROM ($runs) AS r WHERE state = 'enqueued' AND outcome IS DISTINCT FROM 'completed'"), '0', 'all that were begun ended well');
is($node->safe_psql('postgres', "SELECT count(*) FROM ($runs) AS r WHERE claimed_at > run_at + interval '1 s' * $minute / 2"), '0', 'each was begun when it was due');
for my $length (@lengths)
{
	my ($all, $begun, $gap) = split /\|/, $node->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE state = 'enqueued'), count(*) FILTER (WHERE state NOT IN ('enqueued', 'skipped')) FROM ($runs) AS r WHERE schedule = 'of $length'");
	cmp_ok($all, '>=', $minutes, "of $length: every instant has a row");
	is($gap, 0, "of $length: none was missed");
	is($begun, $all, "of $length: and begun") if $length < 50;
	cmp_ok($begun, '>=', $length < 60 ? $all / 2 : $length < 100 ? 2 : 1, "of $length: $begun of $all begun");
}
$node->stop;
done_testing();
