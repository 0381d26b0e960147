
# What was committed is there after a crash: jobs, and leases even of a session that commits asynchronously (promise 2, cases 27 and
# 138). An open lease protects its worker over the restart, and an expired one has the grace.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nautovacuum = off\njobq.sweep_grace = '3s'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', retry_base => '0', max_crashes => 10);
});
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relnamespace = 'jobq'::regnamespace AND relpersistence <> 'p'}),
	'0', 'no unlogged table');

# A crash right after the commits. The WAL writer stands still, so that an asynchronous commit stays in memory: what is then on disk was
# flushed by its own commit. The last two, which may be lost, show that the test would see a loss.
$node->safe_psql('postgres', "SELECT jobq.enqueue(t, queue => 'q') FROM unnest('{first,second}'::text[]) t");
my $session = $node->background_psql('postgres');
$session->query_safe('SET synchronous_commit = off');
my $writer = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
kill 'STOP', $writer;
$session->query_safe("SELECT count(*) FROM jobq.claim('q')");
$session->query_safe('SET jobq.async_claims = on');
$session->query_safe("SELECT count(*) FROM jobq.claim('q')");
$session->query_safe("SELECT jobq.enqueue('third', queue => 'q')");
crash($node, $writer);
eval { $session->quit };
$node->start;
is($node->safe_psql('postgres', "SELECT task, state, attempt FROM jobq.jobs ORDER BY task"), "first|running|1\nsecond|ready|0",
	'an asynchronous session has a durable claim, unless jobq.async_claims is on, and an asynchronous enqueue');

# The usual setting: nothing at all is lost.
$node->safe_psql('postgres', "SELECT jobq.enqueue('fourth', queue => 'q')");
$node->safe_psql('postgres', "CREATE TABLE held AS SELECT * FROM jobq.claim('q', 10)");
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT task, state, attempt FROM jobq.jobs ORDER BY task"),
	"first|running|1\nfourth|running|1\nsecond|running|1", 'enqueue and claim are there right after their commit');
is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('q', 10)"), '0', 'the leases protect over the restart');
is($node->safe_psql('postgres', "SELECT task, jobq.renew(job_id, attempt) IS NOT NULL, jobq.complete(job_id, attempt) FROM held ORDER BY task"),
	"fourth|t|t\nsecond|t|t", 'the workers go on and complete');

# The grace: expired before the restart, swept after it, but not at once; a lease from after the restart at its own time.
$node->safe_psql('postgres', q{
	SELECT jobq.create_queue('long', lease => '24 h');
	SELECT jobq.enqueue('long', queue => 'long');
	SELECT count(*) FROM jobq.claim('long');
	SELECT jobq.enqueue('fifth', queue => 'q');
	SELECT count(*) FROM jobq.claim('q', lease => '1 s');
	SELECT jobq.complete(job_id, attempt) FROM jobq.lease JOIN jobq.job USING (job_id) WHERE task = 'first';
	UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s';
});
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT retried + died FROM jobq.sweep()'), '0', 'a restart expires nobody');
$node->safe_psql('postgres', "SELECT jobq.create_queue('fresh', lease => '1 s', retry_base => '0'); SELECT jobq.enqueue('fresh', queue => 'fresh')");
$node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('fresh'); UPDATE jobq.lease SET expires_at = clock_timestamp() WHERE job_id = (SELECT max(job_id) FROM jobq.job)");
is($node->safe_psql('postgres', 'SELECT retried FROM jobq.sweep()'), '1', 'a lease from after the restart has no grace');
ok($node->poll_query_until('postgres', q{
	DO $$ BEGIN PERFORM jobq.sweep(); END $$;
	SELECT EXISTS (SELECT FROM jobq.jobs WHERE task = 'fifth' AND state <> 'running')}, "DO\nt"),
	'the old one is swept in the end');
is($node->safe_psql('postgres', q{SELECT f.failed_at >= pg_postmaster_start_time() + interval '3 s' FROM jobq.failures f JOIN jobq.job USING (job_id) WHERE task = 'fifth'}),
	't', 'and not before the grace was over');
is($node->safe_psql('postgres', "SELECT state FROM jobq.jobs WHERE task = 'long'"), 'running', 'a long lease has a third of its length');
$node->stop;
done_testing();

# The death of a process takes the whole server down, as kill -9 of the postmaster would, but leaves no process behind.
sub crash
{
	my ($server, $pid) = @_;
	kill 'KILL', $pid;
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last unless -e $server->data_dir . '/postmaster.pid';
		select(undef, undef, undef, 0.1);
	}
	$server->_update_pid(0);
	return;
}
