
# A command whose process is killed takes the whole server through crash recovery (case 57). Its try was counted before it began: with one try it is
# dead, with more it dies at the third crash in a row, and no restart runs it once more. What is recorded has real times (case 168).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
# The server's own restart is what this is about; leases of before it are not to be waited for.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nrestart_after_crash = on\njobq.sweep_grace = '1s'\njobq.sweep_interval = '100ms'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	CREATE ROLE ann LOGIN IN ROLE jobq_scheduler;
	CREATE TABLE effect (what text, at timestamptz DEFAULT clock_timestamp());
	GRANT INSERT ON effect TO ann;
});

sub enqueue { my ($command, $tries) = @_; return $node->safe_psql('postgres', "SELECT jobq.enqueue_sql(\$q\$$command\$q\$, run_as => 'ann', max_attempts => $tries)") }
# The lease is what brings the job back: it is short here, and so is the wait for the next try.
sub quicken { $node->safe_psql('postgres', "SELECT jobq.alter_queue(name, lease => '1 s', retry_base => '100 ms') FROM jobq.queue WHERE name LIKE 'sql/%'"); return }
# Kills the executor once it is at work, and waits for the server to be back.
sub crash
{
	my ($id, $attempt) = @_;
	my $at_work = "SELECT pid FROM pg_stat_activity, jobq.sql_jobs j WHERE job_id = $id AND j.state = 'running' AND attempt = $attempt AND backend_type = 'jobq executor' AND query = command";
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM ($at_work) AS w") or die "attempt $attempt of job $id does not run";
	my $pid = $node->safe_psql('postgres', $at_work);
	kill 'KILL', $pid;
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
	return;
}

enqueue('SELECT 1', 1);
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM jobq.history WHERE state = 'completed'");
quicken();
my $once = enqueue("INSERT INTO effect VALUES ('once'); SELECT pg_sleep(100)", 1);
my $often = enqueue("INSERT INTO effect VALUES ('often'); SELECT pg_sleep(100)", 10);
crash($once, 1);
ok($node->poll_query_until('postgres', "SELECT state = 'dead' FROM jobq.sql_jobs WHERE job_id = $once"), 'one with a single try is dead after it');
is($node->safe_psql('postgres', "SELECT attempt, reason, last_error FROM jobq.sql_jobs WHERE job_id = $once"), '1|attempts exhausted|lease expired', 'with its reason');

# the same crash hit the other one, which has tries left
crash($often, $_) for 2 .. 3;
ok($node->poll_query_until('postgres', "SELECT state = 'dead' FROM jobq.sql_jobs WHERE job_id = $often"), 'one with ten tries is dead after the third crash');
is($node->safe_psql('postgres', "SELECT attempt, tries, reason FROM jobq.sql_jobs WHERE job_id = $often"), '3|3|crashed 3 times', 'with its reason');
is($node->safe_psql('postgres', "SELECT attempt, kind, worker ~ '^jobq executor:[0-9]+\$', claimed_at > now() - interval '1 hour', failed_at >= claimed_at FROM jobq.failures WHERE job_id = $often ORDER BY 1"),
	"1|expired|t|t|t\n2|expired|t|t|t\n3|expired|t|t|t", 'each attempt has its row, with real times');
is($node->safe_psql('postgres', 'SELECT count(*) FROM effect'), '0', 'nothing of them is left');

my $well = enqueue("INSERT INTO effect VALUES ('well')", 1);
ok($node->poll_query_until('postgres', "SELECT state = 'completed' FROM jobq.sql_jobs WHERE job_id = $well"), 'the next job runs');
$node->stop('immediate');
$node->start;
my $after = enqueue("INSERT INTO effect VALUES ('after')", 1);
ok($node->poll_query_until('postgres', "SELECT state = 'completed' FROM jobq.sql_jobs WHERE job_id = $after"), 'and after a crash of the whole server');
is($node->safe_psql('postgres', 'SELECT string_agg(what, \',\' ORDER BY what) FROM effect'), 'after,well', 'no dead one has run again');

# A schedule whose command crashes the server each time is no loop: each job has one try.
$node->safe_psql('postgres', "SELECT jobq.schedule('crashes', '* * * * * *', 'SELECT pg_sleep(100)', run_as => 'ann', overlap => 'skip', catch_up => 'none')");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM jobq.jobs WHERE state = 'running'");
my $scheduled = $node->safe_psql('postgres', "SELECT job_id FROM jobq.jobs WHERE state = 'running'");
crash($scheduled, 1);
ok($node->poll_query_until('postgres', "SELECT state = 'dead' FROM jobq.sql_jobs WHERE job_id = $scheduled"), 'a schedule\'s job dies too');
ok($node->poll_query_until('postgres', "SELECT max(job_id) > $scheduled FROM jobq.sql_jobs"), 'and its next one is another job');
$node->stop;
done_testing();
