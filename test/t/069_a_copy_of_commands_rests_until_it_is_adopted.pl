
# SQL jobs that came to a database by a restored dump or a clone rest there: a copy of production writes nowhere, whatever was due or running when it was made
# (case 133). Adopted, each runs as the role that has its role's name by now, whatever number that has; a job whose role is not there dies with the reason.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $dump = "$PostgreSQL::Test::Utils::tmp_check/commands.dump";
sub server
{
	my ($name) = @_;
	my $server = PostgreSQL::Test::Cluster->new($name);
	$server->init;
	$server->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\njobq.sweep_grace = '1s'\njobq.sweep_interval = '100ms'\nlog_line_prefix = '%m [%p] %b '");
	$server->start;
	return $server;
}
my $node = server('main');
$node->safe_psql('postgres', "CREATE ROLE $_ LOGIN") for qw(ann bob gone);
$node->safe_psql('postgres', 'CREATE DATABASE production');
$node->safe_psql('production', q{
	CREATE EXTENSION jobq;
	GRANT jobq_scheduler TO ann, bob, gone;
	CREATE TABLE effect (database text DEFAULT current_database(), who text DEFAULT current_user, what text);
	GRANT ALL ON effect TO PUBLIC;
});
sub enqueue { my ($role, $what, $more) = @_; return $node->safe_psql('production', "SET ROLE $role; SELECT jobq.enqueue_sql('INSERT INTO effect (what) VALUES (''$what'')'" . ($more || '') . ')') }
my %delayed = map { $_ => enqueue($_, "of $_", ", delay => '1 s'") } qw(ann bob gone);
$node->safe_psql('production', "SELECT jobq.alter_queue(name, lease => '1 s', retry_base => '100 ms') FROM jobq.queue WHERE name LIKE 'sql/%'");
my $running = $node->safe_psql('production', "SET ROLE ann; SELECT jobq.enqueue_sql('INSERT INTO effect (what) VALUES (''running''); SELECT pg_sleep(1000)', max_attempts => 2)");
$node->safe_psql('production', "SELECT jobq.schedule('each second', '* * * * * *', 'INSERT INTO effect (what) VALUES (''scheduled'')', run_as => 'bob')");
$node->poll_query_until('production', "SELECT state = 'running' FROM jobq.sql_jobs WHERE job_id = $running") or die;
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('production') ], 'a dump');
$node->safe_psql('postgres', 'CREATE DATABASE clone TEMPLATE production'); # ends what runs
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('restored'), $dump ], 'restored');
# Elsewhere the same numbers are others' who may do more.
my $other = server('other');
$other->safe_psql('postgres', "CREATE ROLE $_ LOGIN") for qw(bob ann stranger);
$other->safe_psql('postgres', 'ALTER ROLE stranger SUPERUSER; CREATE DATABASE staging');
$other->command_ok([ 'pg_restore', '--no-privileges', '-d', $other->connstr('staging'), $dump ], 'restored elsewhere');
$other->safe_psql('staging', 'GRANT ALL ON effect TO PUBLIC; GRANT jobq_scheduler TO ann, bob');

my %began;
for my $copy ([ $node, 'clone' ], [ $node, 'restored' ], [ $other, 'staging' ])
{
	my ($server, $database) = @$copy;
	$server->poll_query_until($database, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND datname = current_database()}) or die 'no manager';
	ok($server->poll_query_until($database, "SELECT count(*) = 0 FROM jobq.delayed"), "$database: jobs become due");
	$server->safe_psql($database, 'SELECT pg_sleep(2)');
	is($server->safe_psql($database, "SELECT count(*) FROM effect WHERE database = current_database()"), '0', "$database: and none runs");
	is($server->safe_psql($database, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq executor' AND datname = current_database()"), '0', "$database: there is no executor");
	like($server->safe_psql($database, q{SELECT string_agg(check_name || ': ' || message, E'\n' ORDER BY check_name) FROM jobq.health() WHERE NOT ok}), qr/^schedules: 1 schedules rest, .*jobq.adopt\(\) lets them run here/m, "$database: health() says what to do");
}
$other->safe_psql('staging', "UPDATE jobq.sql_command SET due_at = now() - interval '1 min'");
like($other->safe_psql('staging', "SELECT message FROM jobq.health() WHERE check_name = 'sql jobs'"), qr/and wait: they came here by a restored dump or a clone: jobq.adopt\(\)/, 'of commands as well');

$other->safe_psql('staging', 'SELECT jobq.adopt()');
ok($other->poll_query_until('staging', "SELECT count(*) = 3 FROM jobq.sql_jobs WHERE job_id IN (@{[ join ', ', values %delayed ]}) AND ended_at IS NOT NULL"), 'adopted, they end');
is($other->safe_psql('staging', "SELECT what, who FROM effect WHERE database = current_database() AND what LIKE 'of %' ORDER BY 1"), "of ann|ann\nof bob|bob", 'each as the role of its name');
is($other->safe_psql('staging', "SELECT state, attempt, reason FROM jobq.sql_jobs WHERE job_id = $delayed{gone}"), 'dead|0|role "gone" does not exist', 'and whose role is not there is dead');
ok($other->poll_query_until('staging', "SELECT count(*) > 0 FROM effect WHERE database = current_database() AND what = 'scheduled' AND who = 'bob'"), 'schedules too');
ok($other->poll_query_until('staging', "SELECT attempt = 2 AND state = 'running' FROM jobq.sql_jobs WHERE job_id = $running"), 'what ran when the copy was made has lost its try, and has the next');
is($other->safe_psql('staging', "SELECT count(*) FROM effect WHERE database = current_database() AND who NOT IN ('ann', 'bob')"), '0', 'no number made a stranger of anybody');
is($node->safe_psql('production', "SELECT what, who FROM effect WHERE database = 'production' AND what LIKE 'of %' ORDER BY 1"), "of ann|ann\nof bob|bob\nof gone|gone", 'production went on');
$_->stop for $node, $other;
done_testing();
