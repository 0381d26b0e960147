
# What ends a command and takes the next one is one commit. Where the next one cannot be had, the end is written down without it; where the end cannot be
# written down, it is tried until it can, for as long as that takes, under a lease that is renewed (case 178).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_line_prefix = '%m [%p] %b '\njobq.sql_workers = 1\njobq.sweep_grace = '0'\njobq.sweep_interval = '100ms'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	CREATE ROLE ann LOGIN IN ROLE jobq_scheduler;
	CREATE TABLE effect (what text);
	GRANT ALL ON effect TO ann;
});
sub asks { my ($sql) = @_; return $node->safe_psql('postgres', $sql) }
sub becomes { my ($sql, $name) = @_; ok($node->poll_query_until('postgres', $sql), $name); return }
sub enqueue { my ($what) = @_; return asks("SELECT jobq.enqueue_sql('INSERT INTO effect VALUES (''$what''); SELECT pg_sleep(0.7)', run_as => 'ann')") }

my $locker = $node->background_psql('postgres');
sub run_beside_lock
{
	my ($table, $mode) = @_;
	my ($first, $second) = map { enqueue("$_ beside $table") } qw(first second);
	$node->poll_query_until('postgres', "SELECT state = 'running' FROM jobq.sql_jobs WHERE job_id = $first") or die;
	$locker->query_safe("BEGIN; LOCK TABLE jobq.$table IN $mode MODE");
	return ($first, $second);
}

my ($first, $second) = run_beside_lock('ready', 'EXCLUSIVE');
becomes("SELECT count(*) = 1 FROM jobq.finished WHERE job_id = $first AND state = 'completed'", 'no next one can be had: the end is written down all the same');
$locker->query_safe('ROLLBACK');
becomes("SELECT state = 'completed' FROM jobq.sql_jobs WHERE job_id = $second", 'and the next one runs when it can be had');

asks("SELECT jobq.alter_queue(name, lease => '1 s') FROM jobq.queue WHERE name LIKE 'sql/%'");
($first, $second) = run_beside_lock('finished', 'SHARE');
asks('SELECT pg_sleep(4)');
is(asks("SELECT state, attempt FROM jobq.jobs WHERE job_id = $first"), 'running|1', 'the end cannot be written down: the job has not ended, and is nobody else\'s');
$locker->query_safe('ROLLBACK');
becomes("SELECT count(*) = 2 FROM jobq.sql_jobs WHERE job_id IN ($first, $second) AND state = 'completed'", 'it is when it can be');
$locker->quit;

is(asks('SELECT count(*), count(DISTINCT what) FROM effect'), '4|4', 'each ran once');
is(asks('SELECT max(attempt) FROM jobq.history'), '1', 'with one try');
is(asks('SELECT count(*) FROM jobq.failures'), '0', 'nobody crashed');
is(() = slurp_file($node->logfile) =~ /cannot end SQL job/g, 2, 'each trouble is one line in the log');
$node->stop;
done_testing();
