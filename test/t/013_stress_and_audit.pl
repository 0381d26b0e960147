
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

for my $isolation ('read committed', 'serializable')
{
	my $name = $isolation =~ s/ /_/r;
	my $log = "$PostgreSQL::Test::Utils::tmp_check/$name";
	local $ENV{PGDATABASE} = $name;
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql($name, 'CREATE EXTENSION jobq');
	my $time = $isolation eq 'serializable' ? $seconds / 2 : $seconds;
	command_ok([ 'python3', "$folder/load.py", '--log', $log, '--seconds', $time, '--isolation', $isolation ], "$isolation: $time seconds of load");
	# the count of deadlocks in pg_stat_database is up to a second late, the log is not
	command_like([ 'python3', "$folder/audit.py", '--log', $log, '--server-log', $node->logfile ], qr/^0 contradictions$/m, "$isolation: log and tables agree")
		or diag(`python3 $folder/audit.py --log $log --server-log @{[ $node->logfile ]} 2>&1`);
	command_like([ 'python3', "$folder/audit.py", '--log', $log, '--self-test' ], qr/^(\d+) of \1 damages were found$/m, "$isolation: the audit can fail")
		or diag(`python3 $folder/audit.py --log $log --self-test 2>&1`);
}
$node->stop;
done_testing();
