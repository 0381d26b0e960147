
# PREPARE TRANSACTION after a writing function is refused with 0A000, as the server refuses it after NOTIFY; other transactions can be
# prepared, also in the same session and in a database with jobq (case 83).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nmax_prepared_transactions = 10");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q');
	SELECT jobq.create_queue('other');
	SELECT jobq.enqueue(t, queue => 'q', job_key => t) FROM unnest('{a,b,c,d,e,f,g,h}'::text[]) t;
	CREATE TABLE held AS SELECT * FROM jobq.claim('q', 4);
	SELECT jobq.fail(job_id, attempt, 'no', retry => false) FROM held WHERE task = 'd';
	SELECT jobq.schedule_job('s', '@hourly', 't', overlap => 'allow');
	CREATE TABLE note (word text PRIMARY KEY);
});

my @writing = (
	"create_queue('new')", "alter_queue('q', max_attempts => 3)", "drop_queue('other')", "pause_queue('q')", "resume_queue('q')", "purge_queue('q')",
	"set_group('q', 'g', 2)",
	"enqueue('a', queue => 'q')", "enqueue_unique('a', queue => 'q')", "enqueue_batch('a', '[1]', queue => 'q')",
	"claim('q')", "claim_from('{q}')", "renew(1, 1)", "renew_batch('{1}', '{1}')", "complete(1, 1)", "complete_batch('{1}', '{1}')",
	"complete_and_claim('{1}', '{1}', 'q')", "fail(1, 1, 'no')", "snooze(1, 1, '0')",
	"cancel(2)", "cancel_key('q', 'c')", "retry(4)", "retry_dead('q')", "reschedule(6, priority => 1)", 'sweep()',
	"schedule_job('s', '\@daily', 't')", "alter_schedule('s')", "pause_schedule('s')", "resume_schedule('s')", "run_schedule('s')", "unschedule('s')",
	"schedule('sql', '\@daily', 'SELECT 1')", "enqueue_sql('SELECT 1', delay => '1 h')", "cancel_sql((SELECT jobq.enqueue_sql('SELECT 1', delay => '1 h')))", 'adopt()');
for my $call (@writing)
{
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nBEGIN;\nSET LOCAL jobq.claim_in_transaction = allow;\n"
		. "SELECT count(*) FROM jobq.$call;\nPREPARE TRANSACTION 'p'", on_error_stop => 0);
	like($err, qr/^[^\n]*ERROR:\s+0A000: cannot PREPARE/, "refused after $call");
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts'), '0', 'nothing is prepared');
is($node->safe_psql('postgres', "SELECT count(*) FILTER (WHERE state = 'running'), count(*) FILTER (WHERE state = 'ready') FROM jobq.jobs"),
	'3|4', 'and everything was rolled back');
# a verb for which there was nothing to do may be let through; those above all had something to do
is($node->safe_psql('postgres', q{
	SELECT proname FROM pg_proc WHERE pronamespace = 'jobq'::regnamespace AND has_function_privilege('jobq_admin', oid, 'EXECUTE') AND prokind = 'f'
	AND proname NOT IN ('queue_counts', 'lane_states', 'health', 'next_runs', } . join(', ', map { /^(\w+)/; "'$1'" } @writing) . ')'),
	'', 'no writing function is missing here');

# the same session goes on
my ($code, $out, $err) = $node->psql('postgres', q{
	BEGIN;
	SELECT jobq.enqueue('x', queue => 'q') > 0;
	PREPARE TRANSACTION 'p';
	BEGIN;
	INSERT INTO note VALUES ('prepared');
	PREPARE TRANSACTION 'p';
	SELECT jobq.enqueue('y', queue => 'q') > 0;
	BEGIN;
	SELECT count(*) FROM jobq.jobs;
	SELECT count(*) FROM jobq.queue_counts();
	PREPARE TRANSACTION 'r';
}, on_error_stop => 0);
is(scalar(() = $err =~ /ERROR/g), 1, 'one error');
is($node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts ORDER BY gid'), "p\nr", 'others are prepared');
is($node->safe_psql('postgres', "COMMIT PREPARED 'p'; COMMIT PREPARED 'r'; SELECT word FROM note"), 'prepared', 'and commit');
is($node->safe_psql('postgres', "SELECT string_agg(task, ' ') FROM jobq.jobs WHERE task IN ('x', 'y')"), 'y', 'the refused job is not there');

# a prepared transaction of somebody else that holds a row: the sweep passes it over and does not wait; leases are ended by hand, which a
# manager, and a sweep beside one, would not be told of
$node->safe_psql('postgres', 'ALTER SYSTEM SET jobq.enabled = off');
$node->reload;
$node->poll_query_until('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq manager'}, '0') or die;
$node->safe_psql('postgres', q{
	UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 s';
	BEGIN;
	SELECT job_id FROM jobq.lease ORDER BY job_id LIMIT 1 FOR UPDATE;
	PREPARE TRANSACTION 'row';
});
is($node->safe_psql('postgres', "SET statement_timeout = '5s'; SELECT retried + died FROM jobq.sweep()"), '2', 'a row held by a prepared transaction is passed over');
is($node->safe_psql('postgres', "ROLLBACK PREPARED 'row'; SELECT retried + died FROM jobq.sweep()"), '1', 'and taken afterwards');
$node->stop;
done_testing();
