
# A manager whose library and extension do not fit idles, with one line in the log, and works after ALTER EXTENSION UPDATE without a restart
# (case 114). On a standby there is no process of jobq and no error; after the promotion they start by themselves (case 136).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
my $folder = $primary->config_data('--sharedir') . '/extension';
plan skip_all => "$folder is not writable: install jobq into a private copy of the server" unless -w $folder;
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\njobq.sweep_grace = '0'\nmax_connections = 20");
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', max_crashes => 1);
	CREATE FUNCTION public.manager() RETURNS int LANGUAGE sql AS $$SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq manager'$$;
});
ok($primary->poll_query_until('postgres', 'SELECT public.manager() IS NOT NULL'), 'a manager is there');
my $version = $primary->safe_psql('postgres', "SELECT extversion FROM pg_extension WHERE extname = 'jobq'");
my @scripts = ("$folder/jobq--$version--99.0.sql", "$folder/jobq--99.0--$version.sql");
append_to_file($_, "SELECT 1;\n") for @scripts;
END { unlink @scripts }

sub lines { my ($node, $from, $pattern) = @_; return scalar(() = substr(slurp_file($node->logfile), $from) =~ /$pattern/g) }
my $other = qr/jobq manager: the extension in database "postgres" does not have the library's version/;

my $pid = $primary->safe_psql('postgres', 'SELECT public.manager()');
my $from = -s $primary->logfile;

# Under a manager that works.
$primary->safe_psql('postgres', "BEGIN; SELECT jobq.enqueue('made', queue => 'q', delay => '1 s'); ALTER EXTENSION jobq UPDATE TO '99.0'; COMMIT");
$primary->wait_for_log($other, $from);
my $until = time + 3;
my $promoted = 0;
while (time < $until)
{
	$promoted++ if $primary->safe_psql('postgres', 'SELECT count(*) FROM jobq.delayed') ne '1';
	select(undef, undef, undef, 0.2);
}
is($promoted, 0, 'newer than the library: what is due stays');
is(lines($primary, $from, $other), 1, 'and it is said once');
is($primary->safe_psql('postgres', 'SELECT public.manager()'), $pid, 'the manager idles');
is($primary->safe_psql('postgres', "SELECT string_agg(check_name, ' ' ORDER BY check_name) FROM jobq.health() WHERE NOT ok AND check_name IN ('version', 'manager')"), 'version', 'health() says it');
$primary->safe_psql('postgres', "ALTER EXTENSION jobq UPDATE TO '$version'");
ok($primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM jobq.delayed'), 'ALTER EXTENSION UPDATE: it works on');
is($primary->safe_psql('postgres', 'SELECT public.manager()'), $pid, 'without a restart');

# A manager that comes to it, as after the upgrade of a package.
$from = -s $primary->logfile;
$primary->safe_psql('postgres', "BEGIN; SELECT jobq.enqueue('made', queue => 'q', delay => '1 s'); ALTER EXTENSION jobq UPDATE TO '99.0'; COMMIT");
$primary->wait_for_log($other, $from); # of the manager that is there
$from = -s $primary->logfile;
$primary->restart;
$primary->wait_for_log($other, $from);
is($primary->safe_psql('postgres', 'SELECT count(*) FROM jobq.delayed'), '1', 'after a restart: what is due stays');
$primary->safe_psql('postgres', "BEGIN; ALTER EXTENSION jobq UPDATE TO '$version'; ROLLBACK");
$primary->safe_psql('postgres', "ALTER EXTENSION jobq UPDATE TO '$version'");
ok($primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM jobq.delayed'), 'after ALTER EXTENSION UPDATE it works');
is(lines($primary, $from, $other), 1, 'it was said once');
my $error = qr/^\S+ \S+ \S+ \[\d+\] (ERROR|FATAL|PANIC|WARNING):|jobq (manager|launcher): cannot/m;
is(lines($primary, 0, $error), 0, 'nobody crashed or complained');

# A standby.
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->append_conf('postgresql.conf', 'jobq.enabled = off'); # what is due now is for the standby
$primary->reload;
$primary->poll_query_until('postgres', 'SELECT public.manager() IS NULL') or die;
$primary->safe_psql('postgres', q{
	SELECT jobq.enqueue('expires', queue => 'q');
	SELECT count(*) FROM jobq.claim('q', 100, lease => '1 s');
	SELECT jobq.enqueue('made', queue => 'q', delay => '1 ms')});
$primary->wait_for_catchup($standby);
$primary->stop;
is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'jobq%'"), '0', 'on a standby there is no process of jobq');
is($standby->safe_psql('postgres', "SELECT ok, message ~ 'recovery' FROM jobq.health() WHERE check_name = 'manager'"), 't|t', 'and health() finds that right');
$standby->reload;
ok($standby->poll_query_until('postgres', 'SELECT min(run_at) < clock_timestamp() FROM jobq.delayed'), 'something is due on the standby');
is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'jobq%'"), '0', 'and still nobody comes');
$from = -s $standby->logfile;
$standby->promote;
ok($standby->poll_query_until('postgres', "SELECT count(DISTINCT backend_type) = 2 FROM pg_stat_activity WHERE backend_type LIKE 'jobq%'"), 'after the promotion they start by themselves');
ok($standby->poll_query_until('postgres', 'SELECT (SELECT count(*) FROM jobq.delayed) = 0 AND (SELECT count(*) FROM jobq.lease) = 0'), 'and do what is due');
is(lines($standby, 0, qr/^\S+ \S+ \S+ \[\d+\] (ERROR|PANIC|WARNING):|jobq \w+: cannot/m), 0, 'no error before or after');
is(lines($standby, $from, qr/jobq launcher started/), 1, 'one launcher');
$standby->stop;
done_testing();
