
# COPY puts rows into jobq.ready past the lanes: below their cursors, in queues and priorities that nobody has used, while others enqueue and
# claim. Claims find all of them, without a manager's help (promises 1 and 10, case 127).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rounds = $ENV{JOBQ_ROUNDS} || 3;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\njobq.reread_lanes = off\njobq.sweep_interval = '100ms'\njobq.sweep_grace = '10ms'");
$node->start;
my $dir = $node->basedir;

# Rows of a server that has given other tags, lower and higher.
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', retry_base => '0', lease => '1 day'), jobq.create_queue('r', lease => '1 day');
	SELECT jobq.enqueue('old', to_jsonb(n), queue => q, priority => p, group_key => g) FROM generate_series(1, 10) n, unnest('{q,r}'::text[]) q, unnest('{2,5,7}'::int[]) p, unnest('{a,b}'::text[]) g});
$node->safe_psql('postgres', "COPY (SELECT * FROM jobq.$_) TO '$dir/$_'; COPY (SELECT queue_id, tag + 1000000000000, job_id, attempt, tries, crashes, priority, group_key FROM jobq.ready) TO '$dir/ready_high'") for qw(job ready);
$node->safe_psql('postgres', "SELECT jobq.purge_queue('q'), jobq.purge_queue('r')");

for my $round (1 .. $rounds)
{
	for my $file ('ready', 'ready_high')
	{
		my $name = "round $round, $file";
		# lanes of priority 5 whose cursors are behind all that is in the file, none of the others
		$node->safe_psql('postgres', q{
			SELECT jobq.enqueue('new', queue => 'q', group_key => 'a') FROM generate_series(1, 20);
			SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('q', 15);
			SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('q', 5);
			SELECT count(*) FROM jobq.claim('q')});
		my $producer = $node->background_psql('postgres');
		$producer->query_safe("BEGIN; SELECT jobq.enqueue('late', queue => 'q', group_key => 'a')");
		my $worker = $node->background_psql('postgres');
		$worker->query_safe("SET jobq.claim_in_transaction = allow; BEGIN; SELECT jobq.enqueue('late', queue => 'q'); SELECT count(*) FROM jobq.claim('q')");
		my $copy = $node->background_psql('postgres');
		$copy->query_safe("BEGIN; COPY jobq.job FROM '$dir/job'; COPY jobq.ready FROM '$dir/$file'");
		$node->safe_psql('postgres', "SELECT jobq.enqueue('new', queue => 'q', group_key => 'a'); SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('q', 5); SELECT count(*) FROM jobq.claim('q')");
		$copy->query_safe($round == 2 ? 'SAVEPOINT s; SELECT 1; RELEASE s; COMMIT' : 'COMMIT');
		is(rest('q', 7), 60, "$name: claims find what was copied, while others are at it");
		$producer->query_safe('COMMIT');
		$worker->query_safe('ROLLBACK');
		is(rest('q', 7) + rest('r', 7), 61, "$name: ... and in a queue that nobody used, and what was late");
		is($node->safe_psql('postgres', 'SELECT count(*) FROM jobq.ready'), '0', "$name: nothing is left");
		$_->quit for $producer, $worker, $copy;
		# the lanes go on
		$node->safe_psql('postgres', q{SELECT jobq.enqueue('new', queue => q, priority => p, group_key => 'a') FROM unnest('{q,r}'::text[]) q, unnest('{2,5,7}'::int[]) p});
		is(rest('q', 2) + rest('r', 2), 6, "$name: who comes then is claimed");
		$node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('q') AS q, jobq.claim('r') AS r") for 1 .. 2;
		is($node->safe_psql('postgres', q{SELECT count(*) FROM jobq.lanes WHERE "cursor" <= vtime AND vtime >= highest}), '0', "$name: claims start at a cursor again");
		$node->safe_psql('postgres', 'DELETE FROM jobq.finished; DELETE FROM jobq.job');
	}
}

# A COPY that is rolled back, and one that is undone in part.
my $copy = $node->background_psql('postgres', on_error_stop => 0);
$copy->query_safe("BEGIN; COPY jobq.job FROM '$dir/job'; SAVEPOINT s; COPY jobq.ready FROM '$dir/ready'");
$node->safe_psql('postgres', "SELECT jobq.enqueue('new', queue => 'q'); SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('q', 5)");
$copy->query_safe("ROLLBACK TO s; COPY jobq.ready FROM '$dir/ready'; COMMIT");
is(rest('q', 7) + rest('r', 7), 120, 'a COPY that was undone and done again');
$node->safe_psql('postgres', 'DELETE FROM jobq.finished; DELETE FROM jobq.job');
$copy->query_safe("BEGIN; COPY jobq.job FROM '$dir/job'; COPY jobq.ready FROM '$dir/ready'; ROLLBACK");
$copy->quit;
is(rest('q', 7) + rest('r', 7), 0, 'a COPY that was rolled back');

# the net says so too
$node->append_conf('postgresql.conf', 'jobq.reread_lanes = on');
$node->reload;
is($node->safe_psql('postgres', 'SELECT sum(found_too_high), sum(transactions) FROM jobq.lanes'), '0|0', 'no cursor was too high');
$node->stop;
done_testing();

# How many jobs claims find; they are completed.
sub rest
{
	my ($queue, $batch) = @_;
	my $all = 0;
	while ((my $found = $node->safe_psql('postgres', "SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('$queue', $batch)")) > 0)
	{
		$all += $found;
	}
	return $all;
}
