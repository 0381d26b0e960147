
# Rows that were claimed stay in the index while an old snapshot is held; claims, empty ones too, start behind them (promise 8, case 89). The
# holder may be a report or a producer that is still at it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $jobs = 20_000;
my $batch = "(SELECT jsonb_agg(n) FROM generate_series(1, 1000) n)";

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\nautovacuum = off\njobq.enabled = off\nshared_buffers = 256MB");
$node->start;
$node->safe_psql('postgres', q{SET client_min_messages = error; CREATE EXTENSION jobq});
my $session = $node->background_psql('postgres');
$session->query_safe("SET client_min_messages = error; SET jobq.claim_in_transaction = allow");

for my $holder (
	[ 'a report', "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM jobq.queue" ],
	[ 'a producer', "SET jobq.claim_in_transaction = allow; BEGIN; SELECT jobq.enqueue('late', queue => current_setting('my.queue')); SELECT count(*) FROM jobq.queue" ],
	[ 'a cursor of a producer', "BEGIN; SELECT jobq.enqueue('late', queue => current_setting('my.queue')); DECLARE c CURSOR FOR SELECT * FROM jobq.queue; FETCH c" ])
{
	my ($name, $statement) = @$holder;
	(my $queue = $name) =~ s/ /_/g;
	$node->safe_psql('postgres', "SELECT jobq.create_queue('$queue', keep_completed => '0'), jobq.create_queue('purged_$queue')");
	my $pin = $node->background_psql('postgres');
	$pin->query_safe("SET my.queue = '$queue'; $statement");
	# claimed by hundreds, the rest by a full claim
	$node->safe_psql('postgres', "SELECT count(*) FROM (SELECT jobq.enqueue_batch('t', $batch, queue => '$queue', group_key => 'g' || n % 5) FROM generate_series(1, $jobs / 1000) n) x");
	$node->safe_psql('postgres', "SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('$queue', 100)") for 1 .. 40;
	$node->safe_psql('postgres', "SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('$queue', 10000)") for 1 .. 2;
	# the cursor follows one claim behind
	$node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('$queue')");
	is($node->safe_psql('postgres', "SELECT (SELECT count(*) FROM jobq.ready), (SELECT count(*) FROM jobq.lanes WHERE queue = '$queue' AND \"cursor\" > vtime)"),
		'0|1', "$name is at it: $jobs jobs were claimed");
	cmp_ok(pages("SELECT count(*) FROM jobq.ready"), '>', 100, '... and their rows are still there');
	few("SELECT * FROM jobq.claim('$queue')", 20, "$name is at it: an empty claim", 0);
	few("SELECT * FROM jobq.claim_from('{$queue,purged_$queue}')", 30, "$name is at it: an empty claim of two queues", 0);
	is($session->query_safe("CALL jobq.wait('$queue', '1 ms')"), 'f', 'a wait');
	few("SELECT jobq.enqueue('t', queue => '$queue')", 50, "$name is at it: an enqueue", 1);
	$node->safe_psql('postgres', "SELECT jobq.enqueue('t', queue => '$queue') FROM generate_series(1, 3)");
	few("SELECT * FROM jobq.claim('$queue')", 50, "$name is at it: a claim", 1);
	# The claims of above were rolled back: they are read to where they began, no farther.
	is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('$queue', 10)"), '3', '... of what was enqueued since');
	few("SELECT * FROM jobq.claim('$queue')", 20, "$name is at it: and again an empty one", 0);

	# purged: the same, for who has not claimed
	$node->safe_psql('postgres', "SELECT count(*) FROM (SELECT jobq.enqueue_batch('t', $batch, queue => 'purged_$queue', priority => p) FROM generate_series(0, 9) p, generate_series(1, 2)) x");
	is($node->safe_psql('postgres', "SELECT jobq.purge_queue('purged_$queue')"), $jobs, 'purged');
	$node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('purged_$queue')") for 1 .. 2;
	few("SELECT * FROM jobq.claim('purged_$queue')", 20, "$name is at it: an empty claim of a queue that was purged", 0);
	$pin->query_safe('COMMIT');
	is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('$queue', 10)"), $statement =~ /late/ ? '1' : '0', "$name ends: what it made is claimed");
	$pin->quit;
	$node->safe_psql('postgres', 'VACUUM jobq.ready');
}

# As much with ten priorities as with one, once their lanes are read to the end.
$node->safe_psql('postgres', "SELECT jobq.create_queue('one'), jobq.create_queue('ten'), jobq.enqueue('t', queue => 'one')");
$node->safe_psql('postgres', "SELECT jobq.enqueue('t', queue => 'ten', priority => p) FROM generate_series(0, 9) p");
$node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('$_', 10)") for qw(one ten one ten);
my ($one, $ten) = map { pages("SELECT * FROM jobq.claim('$_')") } qw(one ten);
is($ten, $one, "an empty claim reads $one pages with one priority and with ten");

$session->quit;
$node->stop;
done_testing();

# The pages that a statement touches, the second time in its session; both are rolled back.
sub pages
{
	my ($statement) = @_;
	my $pages;
	for (1 .. 2)
	{
		my $plan = $session->query_safe("BEGIN; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) $statement; ROLLBACK");
		my ($hit, $read) = $plan =~ /"Shared Hit Blocks": (\d+),\s+"Shared Read Blocks": (\d+)/;
		$pages = $hit + $read;
	}
	return $pages;
}

sub few
{
	my ($statement, $most, $what, $rows) = @_;
	my $found = $session->query_safe("BEGIN; SELECT count(*) FROM ($statement) x; ROLLBACK");
	is($found, $rows, "$what: $rows rows");
	my $pages = pages($statement);
	cmp_ok($pages, '<=', $most, "$what: $pages pages, at most $most");
	return;
}
