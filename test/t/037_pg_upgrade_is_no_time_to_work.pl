
# While pg_upgrade runs, no job is promoted, swept or pruned, in the old cluster or in the new one; afterwards the queue goes on from where
# it was (promise 10, case 132).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $work = q{
	SELECT 'due', count(*) FROM jobq.delayed WHERE run_at < clock_timestamp() UNION ALL
	SELECT 'ready', count(*) FROM jobq.ready UNION ALL
	SELECT 'expired', count(*) FROM jobq.lease WHERE expires_at < clock_timestamp() UNION ALL
	SELECT 'failures', count(*) FROM jobq.failure UNION ALL
	SELECT 'to prune', count(*) FROM jobq.finished WHERE prune_at < clock_timestamp() ORDER BY 1};
my $full = "due|20\nexpired|20\nfailures|0\nready|1\nto prune|20";

my $old = PostgreSQL::Test::Cluster->new('old');
my $new = PostgreSQL::Test::Cluster->new('new');
for my $node ($old, $new)
{
	$node->init;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\njobq.enabled = off\njobq.sweep_grace = '10ms'\nlog_line_prefix = '%m [%p] %b '");
}
$old->start;
$old->safe_psql('postgres', q{
	SET client_min_messages = error;
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', lease => '1 s', retry_base => '0');
	SELECT count(*) FROM jobq.enqueue_batch('a', (SELECT jsonb_agg(n) FROM generate_series(1, 60) n), queue => 'q');
	CREATE TABLE held AS SELECT * FROM jobq.claim('q', 60);
	SELECT count(jobq.complete(job_id, attempt)) FROM (SELECT * FROM held LIMIT 20) h;
	SELECT count(jobq.snooze(job_id, attempt, '1 h')) FROM (SELECT * FROM held WHERE job_id IN (SELECT job_id FROM jobq.lease) LIMIT 20) h;
	UPDATE jobq.finished SET prune_at = clock_timestamp() - interval '1 s';
	UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s';
	UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '1 s';
	SELECT jobq.enqueue('ready', queue => 'q', job_key => 'k');
});
is($old->safe_psql('postgres', $work), $full, 'there is work of all kinds');
$old->stop;

# From here on managers are on, but for the looks in between.
my $bin = $old->config_data('--bindir');
$_->append_conf('postgresql.conf', 'jobq.enabled = on') for $old, $new;
chdir $PostgreSQL::Test::Utils::tmp_check;
command_ok([ 'pg_upgrade', '--no-sync', '-b', $bin, '-B', $bin, '-d', $old->data_dir, '-D', $new->data_dir, '-s', $new->host, '-p', $old->port, '-P', $new->port ], 'pg_upgrade');

for my $node ($old, $new)
{
	my $name = $node->name;
	rename($node->data_dir . '/global/pg_control.old', $node->data_dir . '/global/pg_control');
	$node->append_conf('postgresql.conf', 'jobq.enabled = off');
	$node->start;
	is($node->safe_psql('postgres', $work), $full, "$name: nothing was done during pg_upgrade");
	$node->append_conf('postgresql.conf', 'jobq.enabled = on');
	$node->reload;
	ok($node->poll_query_until('postgres', "SELECT string_agg(c::text, ' ') = '(due,0) (expired,0) (failures,20) (ready,41) (\"to prune\",0)' FROM ($work) c"),
		"$name: afterwards a manager does it");
	is($node->safe_psql('postgres', q{SELECT jobq.enqueue('a', queue => 'q') > (SELECT max(job_id) FROM held)}), 't', "$name: the numbers go on");
	$node->stop;
}
unlike(slurp_file($new->logfile), qr/\] jobq \w+ (ERROR|FATAL|PANIC|WARNING)|manager: cannot/, 'nothing in the log of jobq');
done_testing();
