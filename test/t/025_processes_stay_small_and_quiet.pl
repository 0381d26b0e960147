
# At rest a process of jobq wakes a few times a second at most, also after a storm of signals, and shows neither a transaction nor a snapshot
# nor a text. However often it looks in vain or meets an error, it keeps its size and its files (cases 91, 103, 112, 113, 118).
# By hand: JOBQ_LOOPS=1000000.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $loops = $ENV{JOBQ_LOOPS} || 20_000;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\nautovacuum = off");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q');
	-- 400 jobs for later: what a loop does must not depend on them.
	SELECT count(*) FROM jobq.enqueue_batch('later', (SELECT jsonb_agg(i) FROM generate_series(1, 400) AS i), queue => 'q', delay => '1 day');
});
ok($node->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type LIKE 'jobq%' AND state = 'idle'"), 'launcher and manager are there');
my ($launcher, $manager) = split /\n/, $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'jobq%' ORDER BY backend_type");

# kilobytes of its own
sub size { my ($pid) = @_; return slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m ? $1 : die }
sub files { my ($pid) = @_; return scalar(() = glob "/proc/$pid/fd/*") }
sub wakes { my ($pid) = @_; return slurp_file("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m ? $1 : die }
sub pause { select(undef, undef, undef, $_[0]); return }

sub is_quiet
{
	my ($when) = @_;
	my @before = map { wakes($_) } $launcher, $manager;
	my $time = time;
	my $busy = 0;
	for (1 .. 3)
	{
		pause(1);
		$busy += $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'jobq%'
			AND (state IS DISTINCT FROM 'idle' OR xact_start IS NOT NULL OR backend_xmin IS NOT NULL OR query <> '')});
	}
	$time = time - $time;
	my @number = (wakes($launcher) - $before[0], wakes($manager) - $before[1]);
	cmp_ok($number[0], '<', 3 * $time, "$when: the launcher wakes less than three times a second ($number[0] in $time s)");
	cmp_ok($number[1], '<', 3 * $time, "$when: the manager wakes less than three times a second ($number[1] in $time s)");
	is($busy, 0, "$when: no transaction, no snapshot, no text");
	return;
}
is_quiet('at rest');

# Signals in a storm, which each by itself make no work.
for my $round (1 .. 2000)
{
	kill $_, $launcher, $manager for qw(HUP USR1 INT);
	pause(0.0002);
}
is_quiet('after a storm of signals');
is($node->safe_psql('postgres', "SELECT string_agg(pid::text, ' ' ORDER BY backend_type) FROM pg_stat_activity WHERE backend_type LIKE 'jobq%'"), "$launcher $manager", 'they are the same as before');

# A job that is due and that somebody has: each loop opens a transaction and finds nothing.
sub commits { return $node->safe_psql('postgres', "SELECT pg_stat_get_db_xact_commit(oid) + pg_stat_get_db_xact_rollback(oid) FROM pg_database WHERE datname = 'postgres'") }
my $session = $node->background_psql('postgres');
$node->append_conf('postgresql.conf', "jobq.sweep_interval = '1 ms'\njobq.sweep_grace = '0'");
$node->safe_psql('postgres', q{
	SELECT jobq.enqueue('leased', queue => 'q');
	SELECT count(*) FROM jobq.claim('q', lease => '1 s');
	SELECT jobq.enqueue('due', queue => 'q', delay => '100 ms')});
$session->set_query_timer_restart;
$session->query_safe("BEGIN; SELECT job_id FROM jobq.delayed JOIN jobq.job USING (job_id) WHERE task = 'due' FOR UPDATE OF delayed; SELECT job_id FROM jobq.lease FOR UPDATE");
$node->reload;

sub loop_until { my ($least) = @_; my $now; while (($now = commits()) < $least) { pause(0.3) } return $now }
my $began = loop_until(commits() + 3000);
my ($size, $files) = (size($manager), files($manager));
my $ended = loop_until($began + $loops);
cmp_ok($ended - $began, '>=', $loops, 'so many loops in vain: ' . ($ended - $began));
cmp_ok(size($manager) - $size, '<', 5 * 1024, "the manager keeps its size: $size kB and @{[ size($manager) ]} kB");
cmp_ok(files($manager), '<=', $files + 2, "and its files: $files and @{[ files($manager) ]}");
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $manager"), '1', 'it is the same');

# Errors: each signal makes it try again at once, and fail.
sub fail_often
{
	my ($number) = @_;
	my $from = wakes($manager);
	while (wakes($manager) - $from < $number) { kill 'HUP', $manager; pause(0.001) }
	return;
}
my $errors = $loops / 20;
$node->safe_psql('postgres', q{
	CREATE FUNCTION public.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
	CREATE TRIGGER forbidden AFTER INSERT ON jobq.job EXECUTE FUNCTION public.nothing()});
$node->wait_for_log(qr/jobq manager: cannot promote jobs: .*trigger/);
fail_often(500);
($size, $files) = (size($manager), files($manager));
fail_often($errors);
cmp_ok(size($manager) - $size, '<', 1024, "the manager keeps its size over $errors errors: $size kB and @{[ size($manager) ]} kB");
cmp_ok(files($manager), '<=', $files + 2, "and its files: $files and @{[ files($manager) ]}");

$session->query_safe('COMMIT');
$node->safe_psql('postgres', 'DROP TRIGGER forbidden ON jobq.job');
$node->reload;
ok($node->poll_query_until('postgres', 'SELECT count(*) = 400 FROM jobq.delayed'), 'then it does what was due');
$session->quit;
$node->stop;
done_testing();
