
# What stops a command: its timeout, cancel() at its commit (case 36), somebody who ends its process or cancels its query (cases 104, 178), a role's
# statement_timeout. One that catches the cancellation and goes on is ended with its process, which counts as a crash. The next job is none the worse.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\njobq.sql_workers = 1\nlog_line_prefix = '%m [%p] %b '");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	CREATE ROLE ann LOGIN IN ROLE jobq_scheduler;
	GRANT CREATE ON SCHEMA public TO ann;
	CREATE TABLE effect (what text);
	GRANT ALL ON effect TO ann;
	SET ROLE ann;
	-- catches what it is told, as often as it is told
	CREATE PROCEDURE stubborn() LANGUAGE plpgsql AS $$
	BEGIN
		LOOP
			BEGIN
				PERFORM pg_sleep(100);
			EXCEPTION WHEN query_canceled THEN
				INSERT INTO effect VALUES ('caught');
			END;
		END LOOP;
	END $$;
});
my $executor = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq executor'};

sub ann { return $node->safe_psql('postgres', "SET ROLE ann; $_[0]") }
sub enqueue { my ($command, $more) = @_; return ann("SELECT jobq.enqueue_sql(\$q\$$command\$q\$" . ($more ? ", $more" : '') . ')') }
sub runs { my ($id) = @_; $node->poll_query_until('postgres', "SELECT count(*) = 1 FROM jobq.sql_jobs j, pg_stat_activity WHERE job_id = $id AND j.state = 'running' AND backend_type = 'jobq executor' AND query = command") or die "job $id does not run"; return }
sub ends { my ($id) = @_; $node->poll_query_until('postgres', "SELECT ended_at IS NOT NULL FROM jobq.sql_jobs WHERE job_id = $id") or die "job $id does not end"; return $node->safe_psql('postgres', "SELECT state, attempt, reason, last_error FROM jobq.sql_jobs WHERE job_id = $id") }
sub is_well { is(ends(enqueue('SELECT 1')), 'completed|1||', "after $_[0] the next job runs"); return }

for my $timeout ('100 ms', '1200 ms')
{
	my $id = enqueue('INSERT INTO effect VALUES (1); SELECT pg_sleep(100)', "timeout => '$timeout'");
	is(ends($id), "dead|1|attempts exhausted|57014: canceled after its timeout of $timeout", "a timeout of $timeout");
	is($node->safe_psql('postgres', "SELECT extract(epoch FROM ended_at - claimed_at) BETWEEN interval_s AND interval_s + 1 FROM jobq.sql_jobs, extract(epoch FROM interval '$timeout') AS interval_s WHERE job_id = $id"), 't', 'neither sooner nor much later');
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM effect'), '0', 'and it is undone');
like(ends(enqueue(q{DO $d$ BEGIN FOR i IN 1..1000000 LOOP PERFORM pg_sleep(0.001); COMMIT; END LOOP; END $d$}, "timeout => '300 ms'")), qr/57014: canceled after its timeout of 300 ms/, 'between its own commits too');
is_well('timeouts');

# cancel: at the commit, and not before
my $id = enqueue('SELECT pg_sleep(100)');
runs($id);
my $session = $node->background_psql('postgres');
$session->query_safe("BEGIN; SELECT jobq.cancel($id, 'not wanted')");
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(100)' AND backend_type = 'jobq executor' AND state = 'active'"), '1', 'a cancel that is not committed stops nothing');
$session->query_safe('COMMIT');
my $began = time;
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(100)' AND backend_type = 'jobq executor'"), 'one that is stops it');
cmp_ok(time - $began, '<', 1, 'within a second');
is(ends($id), 'cancelled|1|not wanted|not wanted', 'and its end says so');
is($node->safe_psql('postgres', "SELECT kind, count(*) FROM jobq.failures WHERE job_id = $id GROUP BY 1"), 'cancelled|1', 'once');
$id = enqueue('SELECT pg_sleep(100)');
runs($id);
$session->query_safe("BEGIN; SAVEPOINT s; SELECT jobq.cancel($id); ROLLBACK TO s; COMMIT");
is($node->safe_psql('postgres', "SELECT state FROM jobq.sql_jobs WHERE job_id = $id"), 'running', 'a cancel that was rolled back stops nothing');
is(ann("SELECT jobq.cancel_sql($id, 'its own')"), 't', 'its role may cancel it');
is(ends($id), 'cancelled|1|its own|its own', 'and it ends');
is(ann("SELECT jobq.cancel_sql($id)"), 'f', 'once');
$id = enqueue('SELECT pg_sleep(100)');
runs($id);
$node->safe_psql('postgres', "SELECT jobq.drop_queue(queue, force => true) FROM jobq.jobs WHERE job_id = $id");
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(100)' AND backend_type = 'jobq executor'"), 'one whose queue is dropped is stopped as well');
is_well('cancels');

# who ends the process, or cancels its query, ends the attempt, and says so
for my $verb ('pg_terminate_backend', 'pg_cancel_backend')
{
	$id = enqueue('SELECT pg_sleep(100)', 'max_attempts => 2');
	runs($id);
	$node->safe_psql('postgres', "SELECT $verb(pid) FROM ($executor) AS e");
	ok($node->poll_query_until('postgres', "SELECT state = 'delayed' FROM jobq.sql_jobs WHERE job_id = $id"), "$verb: the job goes back");
	like($node->safe_psql('postgres', "SELECT last_error FROM jobq.sql_jobs WHERE job_id = $id"), $verb eq 'pg_cancel_backend' ? qr/^57014: canceling statement due to user request/ : qr/^57P01: canceled, since its process was asked to end/, "$verb: with the reason");
	ann("SELECT jobq.cancel_sql($id)");
	is_well($verb);
	$node->safe_psql('postgres', "SELECT $verb(pid) FROM ($executor) AS e");
	is_well("$verb of an idle one");
}

# one that does not hear is ended with its process; nobody else's is
my $crashes = q{SELECT count(*) FROM jobq.failures WHERE kind = 'expired'};
my $stubborn = enqueue('CALL stubborn()', "timeout => '100 ms'");
is(ends($stubborn), 'dead|1|attempts exhausted|lease expired', 'one that catches its cancellation dies as one that crashed');
is($node->safe_psql('postgres', $crashes), '1', 'once');
is($node->safe_psql('postgres', "SELECT extract(epoch FROM ended_at - claimed_at) < 15 FROM jobq.sql_jobs WHERE job_id = $stubborn"), 't', 'in time, not when its lease would have expired');
like(slurp_file($node->logfile), qr/jobq executor FATAL:  terminating background worker "jobq executor"/, 'its process was ended');
unlike(slurp_file($node->logfile), qr/terminated by signal/, 'and no other');
is_well('that');
$session->quit;
$node->stop;
done_testing();
