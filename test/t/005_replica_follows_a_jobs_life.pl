
# A publication FOR ALL TABLES: a table without a primary key would stop every claim there. A job's whole life works, and a
# subscriber ends with the same rows.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nmax_connections = 20");
$publisher->start;
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init(allows_streaming => 'logical');
$subscriber->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nmax_connections = 20");
$subscriber->start;
$_->safe_psql('postgres', 'CREATE EXTENSION jobq') for $publisher, $subscriber;
is($publisher->safe_psql('postgres', q{
	SELECT relname FROM pg_class c WHERE relnamespace = 'jobq'::regnamespace AND relkind IN ('r', 'p')
	AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND contype = 'p')}), '', 'every table has a primary key');

$publisher->safe_psql('postgres', 'CREATE PUBLICATION everything FOR ALL TABLES');
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION follower CONNECTION '$connection' PUBLICATION everything");
$subscriber->wait_for_subscription_sync($publisher, 'follower');
# a second consumer, which only decodes
$publisher->safe_psql('postgres', "SELECT pg_create_logical_replication_slot('decoded', 'test_decoding')");

my ($code, $out, $err) = $publisher->psql('postgres', q{
	SELECT jobq.create_queue('q', retry_base => '0', max_crashes => 2);
	SELECT jobq.alter_queue('q', max_attempts => 5);
	SELECT jobq.set_group('q', g, 10) FROM unnest('{kept,changed,unset}'::text[]) g;
	SELECT jobq.set_group('q', 'changed', 1000);
	SELECT jobq.set_group('q', 'unset');
	SELECT jobq.enqueue('a', queue => 'q', job_key => 'k');
	SELECT jobq.enqueue('a', '{"n": 2}', queue => 'q', job_key => 'k', job_key_mode => 'replace');
	SELECT count(*) FROM jobq.enqueue_batch('b', '[1, 2, 3]', queue => 'q', delay => '1 h');
	SELECT jobq.reschedule(max(job_id), run_at => clock_timestamp(), priority => 1) FROM jobq.job;
	CREATE TEMP TABLE held (job_id bigint PRIMARY KEY, attempt int, task text);
	INSERT INTO held SELECT job_id, attempt, task FROM jobq.claim('q', 2);
	SELECT count(jobq.renew(job_id, attempt)) FROM held;
	SELECT jobq.fail(job_id, attempt, 'no', retry_in => '1 h') FROM held WHERE task = 'a';
	SELECT jobq.snooze(job_id, attempt, '0') FROM held WHERE task = 'b';
	UPDATE jobq.delayed SET run_at = clock_timestamp();
	SELECT * FROM jobq.sweep();
	TRUNCATE held;
	INSERT INTO held SELECT job_id, attempt, task FROM jobq.claim('q', 10);
	SELECT jobq.enqueue('c', queue => 'q', job_key => 'k', job_key_mode => 'replace');
	UPDATE jobq.lease SET expires_at = clock_timestamp() WHERE job_id IN (SELECT job_id FROM held WHERE task = 'a');
	SELECT * FROM jobq.sweep();
	SELECT jobq.complete(job_id, attempt, '{"sum": 6}') FROM held WHERE task = 'b' AND job_id % 2 = 0;
	SELECT jobq.fail(job_id, attempt, 'no', retry => false) FROM held WHERE task = 'b' AND job_id % 2 = 1;
	SELECT jobq.retry_dead('q', 1);
	SELECT jobq.cancel_key('q', 'k', 'not wanted');
	SELECT jobq.pause_queue('q');
	SELECT jobq.resume_queue('q');
	SELECT count(*) FROM jobq.claim('q');
	UPDATE jobq.lease SET expires_at = clock_timestamp();
	SELECT * FROM jobq.sweep();
	SELECT jobq.purge_queue('q');
	UPDATE jobq.finished SET prune_at = clock_timestamp() WHERE state = 'completed';
	SELECT * FROM jobq.sweep();
	SELECT jobq.create_queue('gone');
	SELECT jobq.set_group('gone', 'g', 10);
	SELECT jobq.enqueue('d', queue => 'gone');
	SELECT jobq.drop_queue('gone', force => true);
	SELECT jobq.enqueue('e');
}, on_error_stop => 1);
is($code, 0, 'a whole life works under the publication');
is($err, '', 'without an error');

$publisher->wait_for_catchup('follower');
my $expected = rows($publisher);
like($expected, qr/^group_weight 2\|.*^job \d/ms, 'there are rows to compare');
is(rows($subscriber), $expected, 'the replica has the same rows');
is($publisher->safe_psql('postgres', q{
	SELECT count(*) > 40, count(*) FILTER (WHERE data ~ 'no-tuple-data') FROM pg_logical_slot_get_changes('decoded', NULL, NULL)
	WHERE data LIKE 'table jobq.%'}), 't|0', 'a decoder reads every change with its key');

$subscriber->stop;
$publisher->stop;
done_testing();

sub rows
{
	my ($node) = @_;
	my $query = $node->safe_psql('postgres', q{
		SELECT string_agg(format('SELECT %L || '' '' || count(*), md5(string_agg(t::text, E''\n'' ORDER BY t::text)) FROM jobq.%I t', relname, relname),
			' UNION ALL ' ORDER BY relname)
		FROM pg_class WHERE relnamespace = 'jobq'::regnamespace AND relkind IN ('r', 'p')});
	return $node->safe_psql('postgres', "SET timezone = 'UTC'; $query");
}
