
# The server's wall clock falls back by half an hour and leaps ahead again: whoever renewed in between keeps its lease for the grace, though
# it bears an instant from before the fall (promise 4). What was abandoned is found when the grace is over, by real time.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $grace = 6;
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
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\njobq.sweep_grace = '${grace}s'\njobq.enabled = off");
{
	local %ENV = (%ENV, LD_PRELOAD => $library, WALL_CLOCK => $offset);
	$node->start;
}
my $db = $node->background_psql('postgres');
$db->query_safe(q{
	SET client_min_messages = error;
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', retry_base => '1 h');
	SELECT count(jobq.enqueue(t, queue => 'q')) FROM unnest('{renewed,abandoned}'::text[]) t;
	SELECT job_id FROM jobq.claim('q', 2, lease => '20 s');
});
ok($node->poll_query_until('postgres', "SELECT clock_timestamp() > pg_postmaster_start_time() + interval '$grace s'"), 'the grace of the start is over');

set_clock(-1800);
is($db->query_safe(q{SELECT count(*) FROM jobq.jobs WHERE lease_expires_at > clock_timestamp() + interval '29 min'}), 2, 'the clock has fallen back');
is($db->query_safe(q{SELECT count(*) FROM jobq.jobs, jobq.renew(job_id, 1, '2 s') r WHERE r < clock_timestamp() + interval '3 s'}), 2, 'both are renewed for 2 s');
set_clock(-1780);
is($db->query_safe('SELECT * FROM jobq.sweep()'), '0|0|0', 'a leap by 20 s expires nobody');
is($db->query_safe(q{SELECT count(*) FROM jobq.jobs WHERE lease_expires_at < clock_timestamp()}), 2, 'though both leases are past their end');
is($db->query_safe(q{SELECT jobq.renew(job_id, 1, '1 h') IS NOT NULL FROM jobq.jobs WHERE task = 'renewed'}), 't', 'its worker renews');
ok($node->poll_query_until('postgres', q{SELECT retried = 1 FROM jobq.sweep()}), 'the abandoned one is found when the grace is over');
is($db->query_safe(q{SELECT task, kind FROM jobq.failures JOIN jobq.job USING (job_id)}), 'abandoned|expired', 'and it alone');
$db->quit;
$node->stop;
done_testing();
