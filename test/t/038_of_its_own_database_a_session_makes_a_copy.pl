
# CREATE DATABASE with the session's own database as template, and a database that an interrupted DROP has left (promise 10, case 124).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\njobq.database_scan_interval = '1 s'");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', 'CREATE EXTENSION jobq');

sub managed_are {
	my ($databases, $what) = @_;
	ok($node->poll_query_until('postgres', "SELECT array_agg(datname::text ORDER BY datname::text) = '{$databases}' FROM pg_stat_activity WHERE backend_type = 'jobq manager'"), $what);
	return;
}

managed_are('source', 'a database has a manager');
my ($status, undef, $error) = $node->psql('source', 'CREATE DATABASE copy TEMPLATE source', timeout => 60);
is($status, 0, 'a session of it makes a copy') or diag($error);
managed_are('copy,source', '... and both have a manager');

# The server says that nobody can connect; the launcher must not try.
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'copy'; UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'copy'");
managed_are('source', 'an invalid database has no manager');
$node->safe_psql('postgres', 'CREATE DATABASE later');
$node->safe_psql('later', 'CREATE EXTENSION jobq');
managed_are('later,source', 'a later one has');
# For that the launcher has read the list of databases again.
my $from = -s $node->logfile;
$node->safe_psql('postgres', 'CREATE DATABASE last');
$node->safe_psql('last', 'CREATE EXTENSION jobq');
managed_are('last,later,source', '... and the next');
$node->safe_psql('later', 'DROP EXTENSION jobq');
managed_are('last,source', '... until its extension is dropped');
my $tries = () = slurp_file($node->logfile, $from) =~ /cannot connect to invalid database/g;
is($tries, 0, 'nobody tries to connect to the invalid one');
$node->safe_psql('postgres', 'DROP DATABASE copy');

done_testing();
