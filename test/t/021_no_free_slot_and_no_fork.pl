
# A server without a free place for a manager, or one that cannot make a process: said once, by the name of the setting; health() says so;
# and the manager comes when that is over (cases 96, 106, 107).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
# One place for the launcher, one for a manager; logical replication would have one too.
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'jobq'
	log_statement = none
	max_worker_processes = 2
	max_logical_replication_workers = 0
});
$node->start;
# No place even for the launcher. For its first seconds a server's launcher may be still to come: this one is asked at the end.
my $none = PostgreSQL::Test::Cluster->new('none');
$none->init;
$none->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nmax_worker_processes = 0");
$none->start;
$none->safe_psql('postgres', 'CREATE EXTENSION jobq; CREATE DATABASE late');

sub managers { return $node->safe_psql('postgres', "SELECT coalesce(string_agg(datname, ' ' ORDER BY datname), '') FROM pg_stat_activity WHERE backend_type = 'jobq manager'") }
sub managed { my ($list, $what) = @_; ok($node->poll_query_until('postgres', "SELECT coalesce(string_agg(datname, ' ' ORDER BY datname), '') FROM pg_stat_activity WHERE backend_type = 'jobq manager'", $list), $what); return }
sub lines { my ($pattern) = @_; return scalar(() = slurp_file($node->logfile) =~ /$pattern/g) }

for my $name (qw(one two))
{
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql($name, 'CREATE EXTENSION jobq');
	managed('one', "only one of them has a manager, after $name");
}
my $missing = qr/no free background worker slot for database "\w+"(?: and \d+ others)?; raise max_worker_processes/;
$node->wait_for_log($missing);
my $since = time;
is($node->safe_psql('two', "SELECT check_name, ok FROM jobq.health() WHERE check_name IN ('manager', 'worker slots') ORDER BY 1"),
	"manager|f\nworker slots|f", 'health() of the database that waits is not content');
like($node->safe_psql('two', "SELECT message FROM jobq.health() WHERE check_name = 'worker slots'"), qr/^0 of 2 .*max_worker_processes/, 'and says why');
is($node->safe_psql('one', "SELECT ok FROM jobq.health() WHERE check_name = 'manager'"), 't', 'the other one has its manager');
my $job = $node->safe_psql('two', "SELECT jobq.enqueue('due', delay => '1 ms')");

# Long enough for another try in vain, every five seconds, whatever wakes the launcher meanwhile.
for my $round (1 .. 60)
{
	last if time - $since > 6;
	kill 'HUP', $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq launcher'");
	select(undef, undef, undef, 0.3);
}
is(lines(qr/no free background worker slot/), 1, 'one line in the log for all the tries');
is(managers(), 'one', 'and nothing else has happened');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq launcher'"), '1', 'the launcher lives');

$node->safe_psql('one', 'DROP EXTENSION jobq');
managed('two', 'the place that got free is taken by the one that waited');
ok($node->poll_query_until('two', 'SELECT count(*) = 0 FROM jobq.delayed'), 'and it works');
is($node->safe_psql('two', "SELECT string_agg(check_name, ' ') FROM jobq.health() WHERE NOT ok AND check_name <> 'worker slots'"), '', 'health() is content');
$node->safe_psql('one', 'CREATE EXTENSION jobq');

# A full server at its start.
my $from = -s $node->logfile;
$node->restart;
$node->wait_for_log($missing, $from);
is(lines(qr/no free background worker slot/), 2, 'it is said once again, by the next launcher');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'jobq manager'"), 'after a restart one of them has a manager');
$node->safe_psql('postgres', 'CREATE DATABASE three');
$node->safe_psql('three', 'CREATE EXTENSION jobq');
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
$node->restart;
managed('one three two', 'with places for all each has its manager');

# The server cannot fork for a while. Nobody can connect then.
SKIP:
{
	my $server = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/ ? $1 : die;
	my ($hard) = slurp_file("/proc/$server/limits") =~ /^Max processes\s+\S+\s+(\S+)/m;
	skip 'there is no prlimit', 8 unless defined $hard && system("prlimit --pid $server --nproc >/dev/null 2>&1") == 0;
	my $session = $node->background_psql('two');
	my $launcher = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq launcher'";
	my $pid = $session->query_safe($launcher);
	my $others = $session->query_safe("SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'jobq%'");
	is($others, '4', 'all are there');
	$from = -s $node->logfile;
	system("prlimit --pid $server --nproc=1:$hard") == 0 or die;
	my $command = $session->query_safe("SELECT jobq.enqueue_sql('SELECT 1')");
	$node->wait_for_log(qr/could not fork (?:background )?worker process/, $from);
	is($session->query_safe("SELECT state, attempt FROM jobq.sql_jobs WHERE job_id = $command"), 'ready|0', 'a SQL job waits, untried');
	$session->query_safe("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND datname = 'two'");
	my $failed = eval { $node->wait_for_log(qr/(could not fork (?:background )?worker process.*){3}/s, $from); 1 };
	is($failed, 1, 'the server tries again and again to make the process');
	$session->query_safe("SELECT jobq.enqueue('due', delay => '1 ms')");
	is($session->query_safe("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq manager'"), '2', 'the other managers live');
	system("prlimit --pid $server --nproc=$hard:$hard") == 0 or die;
	managed('one three two', 'when it can fork again the manager comes');
	ok($node->poll_query_until('two', 'SELECT count(*) = 0 FROM jobq.delayed'), 'and it works');
	ok($node->poll_query_until('two', "SELECT state = 'completed' AND attempt = 1 FROM jobq.sql_jobs WHERE job_id = $command"), 'and so does an executor');
	is($session->query_safe($launcher), $pid, 'the same launcher started it');
	$session->quit;
}
$node->stop;

ok($none->poll_query_until('postgres', "SELECT NOT ok AND message ~ 'no place for the jobq launcher: raise max_worker_processes' FROM jobq.health() WHERE check_name = 'manager'"),
	'no place for the launcher: health() says so');
my ($code, $out, $err) = $none->psql('late', 'CREATE EXTENSION jobq');
like("$code $err", qr/^0 .*WARNING: .*no place for the jobq launcher/s, 'and CREATE EXTENSION warns');
$none->stop;
done_testing();
