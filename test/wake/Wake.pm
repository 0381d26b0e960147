# What the tests of the wake-up share: a server, and checks that Python makes with many sessions at once.
package Wake;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use IPC::Open2;
use PostgreSQL::Test::Cluster;
use Test::More;

our @EXPORT = qw(wake_server run_checks);

# Where the checks connect to, if not to the server itself.
our ($host, $port);

# A server with the extension in its database postgres.
sub wake_server
{
	my ($settings) = @_;
	system('python3', '-c', 'import psycopg') == 0 or die 'python3-psycopg is missing';
	my $node = PostgreSQL::Test::Cluster->new('main');
	$node->init(extra => [ '--encoding=UTF8', '--locale=C.UTF-8' ]);
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\nmax_connections = 150\n" . ($settings // ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION jobq');
	return $node;
}

# Runs test/wake/SCRIPT ARGUMENTS. Each of its lines `ok - NAME` or `not ok - NAME` is a test; at a line `restart` the server dies and comes
# back, and the script is told.
sub run_checks
{
	my ($node, $script, @arguments) = @_;
	local %ENV = (%ENV, PGHOST => $host // $node->host, PGPORT => $port // $node->port, PGDATABASE => 'postgres', PGCLIENTENCODING => 'UTF8', PYTHONUNBUFFERED => 1);
	my $process = open2(my $from, my $to, 'python3', '-B', "$FindBin::RealBin/../wake/$script", @arguments);
	my $count = 0;
	while (my $line = <$from>)
	{
		chomp $line;
		if ($line =~ /^(not )?ok - (.*)/) { ok(!$1, $2); $count++; }
		elsif ($line eq 'restart')
		{
			$node->stop('immediate');
			$node->start;
			print {$to} "done\n";
			$to->flush;
		}
		elsif ($line =~ /^! (.*)/) { diag($1); }
		else { note($line); }
	}
	waitpid($process, 0);
	is($?, 0, "$script came to its end");
	cmp_ok($count, '>', 0, "$script made its checks");
}

1;
