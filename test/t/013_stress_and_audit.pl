
# Sixteen claimers, producers, sweepers and an operator at once, and an audit of what the server acknowledged to them against what its tables
# say; then the same in SERIALIZABLE (case 29); then the proof that the audit finds what it is for.
# By hand: JOBQ_STRESS_SECONDS=60, or stress/load.py and stress/audit.py against any fresh database.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{JOBQ_STRESS_SECONDS} || 10;
my $folder = "$FindBin::RealBin/../stress";
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => [ "--encoding=UTF8", "--locale=C.UTF-8" ]);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\nmax_connections = 60\ndeadlock_timeout = '100ms'\nsynchronous_commit = off");
$node->start;
local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port);
system('python3', '-c', 'import psycopg') == 0 or die 'python3-psycopg is missing';

for my $round (['alone', 'read committed', 'off'], ['managed', 'read committed', 'on'], ['serializable', 'serializable', 'on'])
{
	my ($name, $isolation, $enabled) = @$round;
	my $log = "$PostgreSQL::Test::Utils::tmp_check/$name";
	my @audit = ('python3', "$folder/audit.py", '--log', $log, $enabled eq 'on' ? '--managed' : ());
	local $ENV{PGDATABASE} = $name;
	$node->append_conf('postgresql.conf', "jobq.enabled = $enabled");
	$node->reload;
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql('postgres', "ALTER DATABASE $name SET default_transaction_isolation = '$isolation'");
	$node->safe_psql($name, 'CREATE EXTENSION jobq');
	command_ok([ 'python3', "$folder/load.py", '--log', $log, '--seconds', $seconds / 2, '--isolation', $isolation ], "$name: @{[ $seconds / 2 ]} seconds of load");
	# the count of deadlocks in pg_stat_database is up to a second late, the log is not
	command_like([ @audit, '--server-log', $node->logfile ], qr/^0 contradictions$/m, "$name: log and tables agree")
		or diag(`@audit --server-log @{[ $node->logfile ]} 2>&1`);
	command_like([ @audit, '--self-test' ], qr/^(\d+) of \1 damages were found$/m, "$name: the audit can fail")
		or diag(`@audit --self-test 2>&1`);
}
$node->stop;
done_testing();
