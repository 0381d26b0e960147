
# A process that ended before somebody looked had not failed to start (case 108): JOBQ_COMMANDS (400) commands of one statement, of three roles for
# two places, all completed, each once; never more processes than may be; none of them grows (cases 103, 112).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $count = $ENV{JOBQ_COMMANDS} || 400;
my $most_growth = 2000; # kB
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_line_prefix = '%m [%p] %b '");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	CREATE TABLE effect (i int);
	CREATE ROLE a LOGIN; CREATE ROLE b LOGIN; CREATE ROLE c LOGIN;
	GRANT INSERT ON effect TO PUBLIC;
});

sub enqueue
{
	my ($from, $to, $roles) = @_;
	$node->safe_psql('postgres', "SELECT count(jobq.enqueue_sql('INSERT INTO effect VALUES (' || i || ')', run_as => ('{$roles}'::text[])[1 + i % cardinality('{$roles}'::text[])])) FROM generate_series($from, $to) i");
	return;
}
my $most = 0;
sub all_end
{
	my ($ended) = @_;
	for (1 .. 3000)
	{
		my ($executors, $done) = split /\|/, $node->safe_psql('postgres', "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq executor'), count(*) FROM jobq.history");
		$most = $executors if $executors > $most;
		return 1 if $done == $ended;
	}
	return 0;
}
# What a process has for itself, by its number.
sub memory
{
	my ($type) = @_;
	return map { my $pid = $_; $pid => slurp_file("/proc/$pid/status") =~ /RssAnon:\s+(\d+)/ ? $1 : die 'no RssAnon' }
	  split /\n/, $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq $type'");
}

# roles that take the places from each other
enqueue(1, $count / 4, 'a,b,c');
ok(all_end($count / 4), 'all of three roles end');

# one role, whose processes stay
enqueue($count / 4 + 1, $count / 2, 'a');
ok(all_end($count / 2), 'half of them have ended');
my %before = (memory('executor'), memory('manager'));
enqueue($count / 2 + 1, $count, 'a');
ok(all_end($count), 'all have ended');
my %after = (memory('executor'), memory('manager'));
is(join(',', sort keys %after), join(',', sort keys %before), 'in the same processes');
my %growth = map { $_ => $after{$_} - $before{$_} } keys %before;
note("grown by kB: @{[ values %growth ]}, of @{[ values %before ]}");
is(scalar(grep { $_ > $most_growth } values %growth), 0, 'which have not grown');

is($node->safe_psql('postgres', "SELECT string_agg(DISTINCT state || ' ' || attempt, ',') FROM jobq.history"), 'completed 1', 'each at its first try');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT i) FROM effect'), "$count|$count", 'each once');
is($node->safe_psql('postgres', 'SELECT count(*) FROM jobq.failures'), '0', 'there is no failure');
cmp_ok($most, '<=', 2, 'never more processes than jobq.sql_workers');
unlike(slurp_file($node->logfile), qr/jobq \w+ (ERROR|FATAL|WARNING)|cannot|no free/, 'and no complaint in the log');
$node->stop;
done_testing();
