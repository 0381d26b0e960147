
# The wall clock goes ahead by eight hours for a while and comes back: schedules fire by the clock that is, no instant fires twice, and what was missed in
# the wrong time is still to come (promise 7, cases 6, 12). So does a small step back.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $tmp = PostgreSQL::Test::Utils::tempdir();
chmod 0755, $tmp;
my ($library, $offset) = ("$tmp/wall_clock.so", "$tmp/offset");
system('g++', '-std=c++20', '-O2', '-shared', '-fPIC', '-o', $library, "$FindBin::RealBin/../stress/wall_clock.cpp") == 0 or die 'no g++';

sub set_clock
{
	my ($seconds) = @_;
	open my $file, -e $offset ? '+<' : '>', $offset or die $!;
	syswrite $file, pack 'q', $seconds * 1e9;
	close $file;
}
set_clock(0);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'");
{
	local %ENV = (%ENV, LD_PRELOAD => $library, WALL_CLOCK => $offset);
	$node->start;
}
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.schedule_job('second', '* * * * * *', 'second', overlap => 'allow', catch_up => 'none');
	SELECT jobq.schedule_job('minute', '* * * * *', 'minute', overlap => 'allow');
	SELECT jobq.schedule_job('interval', '2 seconds', 'interval', overlap => 'allow', catch_up => 'all');
	SELECT jobq.schedule_job('day', '@daily', 'day', 'null', timezone => 'Asia/Tokyo');
});
my $goes_on = q{SELECT count(*) = 2 FROM jobq.schedule_runs WHERE schedule IN ('second', 'interval') AND state = 'enqueued'
	AND run_at BETWEEN clock_timestamp() - interval '1.9 s' AND clock_timestamp() AND noted_at > run_at - interval '1 s'};
my $once = q{SELECT count(*) FROM (SELECT task FROM jobq.schedule_runs r JOIN jobq.job j USING (job_id) GROUP BY task HAVING count(*) <> count(DISTINCT run_at)) t};
ok($node->poll_query_until('postgres', $goes_on), 'they fire');
my $start = $node->safe_psql('postgres', 'SELECT clock_timestamp()');

set_clock(8 * 3600);
ok($node->poll_query_until('postgres', $goes_on), 'eight hours ahead they fire');
is($node->safe_psql('postgres', q{SELECT count(*) > 100 FROM jobq.schedule_runs WHERE state = 'missed'}), 't', 'what came in between is missed');
is($node->safe_psql('postgres', qq{SELECT count(*) FROM jobq.schedule_runs WHERE schedule = 'interval' AND state = 'enqueued' AND noted_at > '$start'::timestamptz + interval '1 h'}) >= 100, 1, 'or made up for, as each wants it');

set_clock(0);
ok($node->poll_query_until('postgres', $goes_on), 'back again they fire by the clock that is');
is($node->safe_psql('postgres', q{SELECT count(*) FROM jobq.schedule_runs WHERE state = 'missed' AND coalesce(until, run_at) > clock_timestamp()}), '0', 'what was missed in time to come is still to come');
is($node->safe_psql('postgres', q{SELECT count(*) FROM jobq.schedules WHERE schedule <> 'day' AND next_run_at > clock_timestamp() + interval '61 s'}), '0', 'each is due next by its period');
is($node->safe_psql('postgres', q{SELECT next_run_at = r FROM jobq.schedules, jobq.next_runs('@daily', 1, 'Asia/Tokyo') r WHERE schedule = 'day'}), 't', 'the daily one at its hour');
is($node->safe_psql('postgres', $once), '0', 'no instant has two jobs');

# Steps of a clock that is set by hand, or by a time server.
for my $step (-0.6, -3, -0.2, 0)
{
	set_clock($step);
	sleep 0.7;
}
ok($node->poll_query_until('postgres', $goes_on), 'after small steps they fire');
is($node->safe_psql('postgres', $once), '0', 'each instant once');
is($node->safe_psql('postgres', q{SELECT count(*) FROM jobq.schedule_runs r LEFT JOIN jobq.job j USING (job_id) WHERE state = 'enqueued' AND j.job_id IS NULL}), '0', 'and every row has its job');
$node->stop;
done_testing();
