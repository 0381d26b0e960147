
# What lanes know is lost with the server; what is ready is not. After a restart, a crash, a promotion, in a copy of the database and in an
# extension that was made anew all jobs are claimed once, each group's in their order, and claims start at a cursor again (promises 1, 8 and 10).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\njobq.sweep_interval = '100ms'");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE work');
$node->safe_psql('work', "CREATE EXTENSION jobq; SELECT jobq.create_queue('q')");

my @endings = (
	[ 'a restart', sub { $node->restart } ],
	[ 'a crash', sub { $node->stop('immediate'); $node->start } ],
	[ 'a crash that follows a claim', sub { $node->safe_psql('work', "SELECT count(*) FROM jobq.claim('q', 7)"); $node->stop('immediate'); $node->start } ],
);
for my $ending (@endings)
{
	my ($name, $end) = @$ending;
	put($node, 'work', 20);
	$node->safe_psql('work', "SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('q', 10)");
	$end->();
	put($node, 'work', 5, 20);
	is(claim_all($node, 'work', 7), 'a 25, b 25, c 25, - 25', "$name: all are claimed, in the order of each group");
	starts_at_a_cursor($node, 'work', $name);
}

# Who waits on a standby, or looks at it, makes no lanes there that would be old at its promotion.
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$standby->psql('work', "CALL jobq.wait('q', '10 ms')");
$standby->psql('work', "SELECT count(*) FROM jobq.claim('q')");
put($node, 'work', 20);
$standby->psql('work', "CALL jobq.wait('q', '10 ms')");
$node->safe_psql('work', "SELECT jobq.enqueue('t', to_jsonb(p), queue => 'q', priority => p, group_key => 'other') FROM generate_series(0, 9) p WHERE p <> 5");
$node->wait_for_catchup($standby, 'replay', $node->lsn('write'));
$node->stop('immediate');
$standby->promote;
put($standby, 'work', 5, 20);
is($standby->safe_psql('work', "SELECT count(*) FROM jobq.claim('q', 5)"), '5', 'a promotion: the priorities before are claimed');
is(claim_all($standby, 'work', 7, 5), 'a 25, b 25, c 25, - 25', 'a promotion: all are claimed, in the order of each group');
starts_at_a_cursor($standby, 'work', 'a promotion');

# A copy of the database, and the database given up and made from the copy.
put($standby, 'work', 20);
$standby->safe_psql('work', "SELECT count(*) FROM jobq.claim('q', 3)");
$standby->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE work');
$standby->safe_psql('postgres', 'DROP DATABASE work');
$standby->safe_psql('postgres', 'CREATE DATABASE work TEMPLATE copy');
for my $database (qw(work copy))
{
	put($standby, $database, 5, 20);
	is($standby->safe_psql($database, "SELECT count(*) FROM jobq.ready"), 97, "$database has its backlog");
	is(claim_all($standby, $database, 7), 'a 25, b 25, c 25, - 25', 'a database and its copy: all are claimed, in the order of each group');
	starts_at_a_cursor($standby, $database, 'a database and its copy');
}

# The extension anew: queues have the numbers of those before.
put($standby, 'work', 20);
$standby->safe_psql('work', "SELECT count(*) FROM jobq.claim('q', 50)");
$standby->safe_psql('work', q{
	BEGIN; DROP EXTENSION jobq; ROLLBACK;
	SELECT count(*) FROM jobq.claim('q', 3);
	DROP EXTENSION jobq CASCADE;
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q')});
put($standby, 'work', 25);
is(claim_all($standby, 'work', 7), 'a 25, b 25, c 25, - 25', 'an extension made anew: all are claimed, in the order of each group');
starts_at_a_cursor($standby, 'work', 'an extension made anew');
$standby->safe_psql('work', "BEGIN; DROP EXTENSION jobq; CREATE EXTENSION jobq; SELECT jobq.create_queue('q'); COMMIT");
put($standby, 'work', 25);
is(claim_all($standby, 'work', 7), 'a 25, b 25, c 25, - 25', 'an extension made anew in one transaction');
starts_at_a_cursor($standby, 'work', 'an extension made anew in one transaction');

unlike(slurp_file($_->logfile), qr/would have missed a job|PANIC|terminated by signal/, 'no cursor was too high') for $node, $standby;
$standby->stop;
done_testing();

# So many jobs of each of four groups, numbered from there on.
sub put
{
	my ($on, $database, $count, $after) = @_;
	$after //= 0;
	$on->safe_psql($database, "SELECT jobq.enqueue('t', to_jsonb(n), queue => 'q', group_key => g) FROM generate_series($after + 1, $after + $count) n, unnest('{a,b,c,NULL}'::text[]) g");
	return;
}

# What groups there were, if the numbers of each rose; with what was claimed before, which a table keeps.
sub claim_all
{
	my ($on, $database, $batch) = @_;
	my (%last, %count, @wrong);
	my @all;
	while (my @rows = split /\n/, $on->safe_psql($database, "SELECT coalesce(group_key, '-'), payload FROM jobq.claim('q', $batch)"))
	{
		push @all, @rows;
	}
	for my $row (@all)
	{
		my ($group, $number) = split /\|/, $row;
		push @wrong, "$group $number after $last{$group}" if exists $last{$group} && $number <= $last{$group};
		$last{$group} = $number;
	}
	# who was claimed before the end of the server, too
	my $made = $on->safe_psql($database, "SELECT coalesce(group_key, '-'), count(*) FROM jobq.job JOIN jobq.lease USING (job_id) WHERE priority = 5 GROUP BY 1");
	my $done = $on->safe_psql($database, "SELECT coalesce(group_key, '-'), count(*) FROM jobq.job JOIN jobq.finished USING (job_id) WHERE priority = 5 GROUP BY 1");
	for (split /\n/, "$made\n$done")
	{
		my ($group, $count) = split /\|/;
		$count{$group} += $count if defined $count;
	}
	$on->safe_psql($database, "SELECT count(jobq.complete(job_id, attempt)) FROM jobq.lease; DELETE FROM jobq.finished; DELETE FROM jobq.job");
	return join ', ', @wrong, map { "$_ " . ($count{$_} // 0) } qw(a b c -);
}

sub starts_at_a_cursor
{
	my ($on, $database, $name) = @_;
	$on->safe_psql($database, "SELECT count(*) FROM jobq.claim('q')") for 1 .. 2;
	is($on->safe_psql($database, q{SELECT count(*) FILTER (WHERE "cursor" > vtime), count(*) FILTER (WHERE "cursor" <= vtime AND vtime >= highest), sum(found_too_high), sum(transactions) FROM jobq.lanes WHERE priority = 5}),
		'1|0|0|0', "$name: claims start behind what was claimed");
	return;
}
