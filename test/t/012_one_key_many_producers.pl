
# Twenty producers enqueue the same keys at once (case 69): each key has exactly one job, each producer is told its id, and one of them that it
# made it; with replace and reject in the crowd too. Also with SERIALIZABLE as the database's default, where 40001 is tried again.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\nmax_connections = 50");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION jobq; CREATE TABLE told (client int, job_key text, job_id bigint, created boolean)');

# What a producer does for one key. pgbench starts a script again after 40001, so the number of its next key is the number of answers it has.
my $next_key = "BEGIN ISOLATION LEVEL READ COMMITTED;\nSELECT count(*) + 1 AS n FROM told WHERE client = :client_id \\gset\nCOMMIT;\n";

sub enqueue_as
{
	my ($mode, $queue) = @_;
	my $insert = "INSERT INTO told SELECT :client_id, 'k' || :n, * FROM jobq.enqueue_unique('a', queue => '$queue', job_key => 'k' || :n, job_key_mode => '$mode')";
	return "$next_key$insert;\n" if $mode ne 'reject';
	return "${next_key}DO \$\$ BEGIN $insert; EXCEPTION WHEN unique_violation THEN INSERT INTO told VALUES (:client_id, 'k' || :n, NULL, false); END \$\$;\n";
}

for my $isolation ('read committed', 'serializable')
{
	$node->safe_psql('postgres', "ALTER DATABASE postgres SET default_transaction_isolation = '$isolation'");
	for my $mode (qw(keep replace preserve_run_at reject))
	{
		my $queue = "$mode $isolation";
		$node->safe_psql('postgres', "TRUNCATE told; SELECT jobq.create_queue('$queue')");
		$node->pgbench('-n -c 20 -j 2 -t 25 --max-tries=200', 0, [qr/number of failed transactions: 0 /], [qr/^(pgbench:.*)?$/s], "producers, $queue",
			{ '012_' . $queue =~ s/ /_/r => enqueue_as($mode, $queue) });
		is($node->safe_psql('postgres', q{
			SELECT count(*), count(DISTINCT job_key), bool_and(n = 20 AND made = 1 AND ids = 1)
			FROM (SELECT job_key, count(*) AS n, count(*) FILTER (WHERE created) AS made, count(DISTINCT job_id) AS ids FROM told GROUP BY 1) k}),
			'25|25|t', "$queue: one made for each key, the others told its id");
		is($node->safe_psql('postgres', "SELECT count(*), count(DISTINCT job_key) FROM jobq.jobs WHERE queue = '$queue'"), '25|25', "$queue: one job for each key");
	}
}
$node->stop;
done_testing();
