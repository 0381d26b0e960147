
# The work of a claim does not grow with the backlog, whatever the statistics say and whatever the caller has set (promise 8, cases 66, 94, 97,
# 98 and 99): tables analysed while empty, then 1,000,000 jobs, no autovacuum.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\nautovacuum = off\nshared_buffers = 512MB\nmax_wal_size = 4GB");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', keep_completed => '0');
	SELECT jobq.create_queue('empty');
	SELECT jobq.create_queue('paused');
	SELECT jobq.create_queue('later');
	ANALYZE jobq.queue, jobq.job, jobq.ready, jobq.delayed, jobq.lease, jobq.finished, jobq.key, jobq.failure;
});
my $session = $node->background_psql('postgres');
$session->query_safe("SET jobq.claim_in_transaction = allow; SET statement_timeout = '30s'");
# plans of empty tables
$session->query_safe("SELECT count(*) FROM jobq.claim('q'); SELECT jobq.complete(1, 1); SELECT promoted FROM jobq.sweep()") for 1 .. 6;

$node->safe_psql('postgres', q{
	SELECT count(*) FROM (SELECT jobq.enqueue_batch('a', p, queue => 'q') FROM (SELECT jsonb_agg(i) AS p FROM generate_series(1, 100000) i) b, generate_series(1, 9)) x;
	SELECT count(*) FROM (SELECT jobq.enqueue_batch('a', p, queue => 'paused') FROM (SELECT jsonb_agg(i) AS p FROM generate_series(1, 50000) i) b) x;
	SELECT count(*) FROM (SELECT jobq.enqueue_batch('a', p, queue => 'later', delay => '1 h') FROM (SELECT jsonb_agg(i) AS p FROM generate_series(1, 50000) i) b) x;
	SELECT jobq.pause_queue('paused');
});
is($node->safe_psql('postgres', 'SELECT count(*) FROM jobq.job'), '1000000', 'a million jobs');

few("SELECT * FROM jobq.claim('q')", 50, 'claim of 1, with the plans and statistics of empty tables', 1);
few("SELECT * FROM jobq.claim('q', 100)", 1500, 'claim of 100', 100);
few("SELECT * FROM jobq.claim('empty')", 20, 'claim of an empty queue', 0);
few("SELECT * FROM jobq.claim('paused')", 20, 'claim of a paused queue', 0);
few("SELECT * FROM jobq.claim('later')", 20, 'claim of a queue of future jobs', 0);
few("SELECT * FROM jobq.claim_from('{empty,paused,later,q}')", 70, 'claim_from', 1);
few('SELECT * FROM jobq.sweep()', 60, 'sweep with nothing due', 1);
# From 19 on, who reads a page first marks it as visible to all, which is another page.
$node->safe_psql('postgres', 'SELECT count(*) FROM jobq.ready; SELECT count(*) FROM jobq.delayed');
few('SELECT * FROM jobq.queue_counts()', 200, 'queue_counts by a sample', 4);
few("SELECT jobq.enqueue('b', queue => 'q', job_key => 'some key')", 60, 'enqueue with a key', 1);
few("SELECT jobq.enqueue('b', queue => 'q', job_key => 'some key')", 60, 'enqueue with a key that is there', 1);

# settings of the caller that turn every good plan off
my @settings = map { "enable_$_ = off" } qw(indexscan indexonlyscan bitmapscan nestloop sort hashjoin mergejoin seqscan material);
$session->query_safe("SET $_") for @settings, 'plan_cache_mode = force_custom_plan', 'cpu_tuple_cost = 1000', 'random_page_cost = 10000', 'jit_above_cost = 0';
$session->query_safe('DISCARD PLANS');
few("SELECT * FROM jobq.claim('q')", 50, 'claim of 1 by a caller with every enable_* off, planned anew', 1);
few("SELECT * FROM jobq.claim('q')", 50, 'and again', 1);
few("SELECT jobq.complete(job_id, attempt) FROM jobq.claim('q')", 110, 'claim and complete', 1);
is($session->query_safe("SELECT string_agg(current_setting('enable_' || n), ' ') FROM unnest('{seqscan,bitmapscan,sort,hashjoin,mergejoin}'::text[]) n"),
	'off off off off off', 'the settings of the caller are as they were');
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM jobq.claim('q');
	DO $$ BEGIN PERFORM jobq.cancel(1, repeat('x', 10)), jobq.claim('none'); EXCEPTION WHEN undefined_object THEN NULL; END $$;
	SELECT string_agg(current_setting('enable_' || n), ' ') FROM unnest('{seqscan,bitmapscan,sort,hashjoin,mergejoin}'::text[]) n}),
	"1\non on on on on", 'and so after an error');

# statistics of the full tables
$session = $node->background_psql('postgres');
$session->query_safe("SET jobq.claim_in_transaction = allow; SET statement_timeout = '30s'");
$node->safe_psql('postgres', 'ANALYZE jobq.job, jobq.ready, jobq.delayed, jobq.lease');
for my $mode (qw(auto force_generic_plan force_custom_plan))
{
	$session->query_safe("SET plan_cache_mode = $mode");
	few("SELECT * FROM jobq.claim('q')", 50, "claim of 1 after ANALYZE, plan_cache_mode $mode", 1);
}
$session->quit;
$node->stop;
done_testing();

# The pages that a statement touches, the second time it is run in the session: the first one reads the catalogs for its plan. It is run in a
# transaction that is rolled back, so that both find the same rows.
sub few
{
	my ($statement, $most, $what, $rows) = @_;
	my ($found, $pages);
	for (1 .. 2)
	{
		my $plan = $session->query_safe("BEGIN; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) $statement; ROLLBACK");
		($found) = $plan =~ /"Actual Rows": (\d+)/;
		my ($hit, $read) = $plan =~ /"Shared Hit Blocks": (\d+),\s+"Shared Read Blocks": (\d+)/;
		$pages = $hit + $read;
	}
	is($found, $rows, "$what: $rows rows");
	cmp_ok($pages, '<=', $most, "$what: $pages pages, at most $most");
	return;
}
