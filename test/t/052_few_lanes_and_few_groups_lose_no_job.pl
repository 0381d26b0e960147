
# More queues, priorities and groups than there is room for: claims are slower, or first in, first out, but hand out every job once (promises
# 1 and 8).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($queues, $priorities) = (20, 3);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\njobq.sweep_interval = '100ms'");
$node->start;
$node->safe_psql('postgres', "CREATE EXTENSION jobq; SELECT jobq.create_queue('q' || n) FROM generate_series(1, $queues) n");

for my $room ([ 0, 0 ], [ 3, 4 ], [ 1, 0 ], [ 0, 4 ], [ 40, 1 ])
{
	my ($lanes, $groups) = @$room;
	my $name = "$lanes lanes, $groups groups";
	$node->append_conf('postgresql.conf', "jobq.max_lanes = $lanes\njobq.max_groups = $groups");
	$node->restart;
	# Queue by queue in turns, so that lanes come and go; two open producers and a claim that is undone hold some fast.
	my $late = $node->background_psql('postgres');
	$late->query_safe("SET jobq.claim_in_transaction = allow; BEGIN; SELECT count(*) FROM (SELECT jobq.enqueue('t', to_jsonb(0), 'q' || n, 5) FROM generate_series(1, 2) n) x");
	put(1 .. 2);
	my $undone = $node->background_psql('postgres');
	$undone->query_safe("SET jobq.claim_in_transaction = allow; BEGIN; SELECT count(*) FROM generate_series(1, 4) n, jobq.claim('q' || n, 2)");
	put(3 .. 4);
	my $claimed = claim(5);
	$late->query_safe('COMMIT');
	$claimed += claim(1);
	$undone->query_safe('ROLLBACK');
	put(5);
	$late->quit;
	$undone->quit;
	$claimed += claim(10) for 1 .. 5;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM jobq.ready'), '0', "$name: claims leave nothing");
	is($claimed, $queues * $priorities * 5 * 2 + 2, "$name: every job was claimed");
	is($node->safe_psql('postgres', 'SELECT count(*), max(attempt) FROM jobq.lease'), "$claimed|1", "$name: ... once");
	is($node->safe_psql('postgres', 'SELECT coalesce(sum(found_too_high), 0), coalesce(sum(transactions), 0), count(*) <= ' . $lanes . ' FROM jobq.lanes'), '0|0|t', "$name: as the lanes say");
	# first in, first out where there are no turns
	$node->safe_psql('postgres', "SELECT jobq.enqueue('t', to_jsonb(n), 'q1', group_key => 'g' || n % 7) FROM generate_series(1, 50) n");
	is($node->safe_psql('postgres', "SELECT ok FROM jobq.health() WHERE check_name = 'groups'"), $groups == 0 ? 't' : 'f', "$name: health() says that groups find no place") if $lanes && $groups < 2;
	is($node->safe_psql('postgres', "SELECT bool_and(n > before) FROM (SELECT payload::int AS n, lag(payload::int) OVER (PARTITION BY group_key ORDER BY ordinality) AS before FROM jobq.claim('q1', 50) WITH ORDINALITY) x"),
		't', "$name: first in, first out in each group");
	if ($groups == 0)
	{
		$node->safe_psql('postgres', "SELECT jobq.enqueue('t', to_jsonb(n), 'q1', group_key => 'g' || n / 10) FROM generate_series(1, 50) n");
		is($node->safe_psql('postgres', "SELECT string_agg(payload::text, ' ' ORDER BY ordinality) FROM jobq.claim('q1', 50) WITH ORDINALITY"), "@{[1 .. 50]}", "$name: first in, first out among all");
	}
	$node->safe_psql('postgres', 'SELECT count(jobq.complete(job_id, attempt)) FROM jobq.lease');
	is($node->safe_psql('postgres', "SELECT ok FROM jobq.health() WHERE check_name = 'groups'"), 't', "$name: ... no more");
}
unlike(slurp_file($node->logfile), qr/would have missed a job|PANIC|terminated by signal/, 'no cursor was too high');
$node->stop;
done_testing();

# In every queue and priority a job of two groups for each number.
sub put
{
	$node->safe_psql('postgres', "SELECT count(jobq.enqueue('t', to_jsonb($_), 'q' || q, p, group_key => g)) FROM generate_series(1, $queues) q, generate_series(4, 3 + $priorities) p, unnest('{a,b}'::text[]) g") for @_;
	return;
}

sub claim
{
	my ($most) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM generate_series(1, $queues) q, jobq.claim('q' || q, $most)");
}
