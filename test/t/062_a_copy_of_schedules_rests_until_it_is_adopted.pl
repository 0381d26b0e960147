
# Schedules that came to a database by a restored dump or a clone rest there, with one line in the log, until jobq.adopt() (case 133). Workers that
# connect by themselves are not held up. Owners are found by their names.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $dump = "$PostgreSQL::Test::Utils::tmp_check/schedules.dump";
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_line_prefix = '%m [%p] %b '");
$node->start;
$node->safe_psql('postgres', q{CREATE DATABASE production});
$node->safe_psql('production', q{
	CREATE EXTENSION jobq;
	CREATE ROLE "Weird ""Role" LOGIN IN ROLE jobq_scheduler;
	SET ROLE "Weird ""Role";
	SELECT jobq.schedule_job('tick', '* * * * * *', 'tick', overlap => 'allow');
	RESET ROLE;
	SELECT jobq.enqueue('work');
});
ok($node->poll_query_until('production', q{SELECT count(*) > 1 FROM jobq.schedule_runs WHERE state = 'enqueued'}), 'at home they fire');
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('production') ], 'dump');
$node->safe_psql('postgres', 'CREATE DATABASE clone TEMPLATE production');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('restored'), $dump ], 'restore');

my $other = PostgreSQL::Test::Cluster->new('other');
$other->init;
$other->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\njobq.sweep_grace = '1s'\nlog_line_prefix = '%m [%p] %b '");
$other->start;
$other->safe_psql('postgres', q{CREATE ROLE somebody; CREATE ROLE another; CREATE ROLE "Weird ""Role"; CREATE DATABASE staging});
$other->command_ok([ 'pg_restore', '--no-privileges', '-d', $other->connstr('staging'), $dump ], 'restore elsewhere');

my $rests = 'jobq manager: the schedules of this database rest';
for my $copy ([ $node, 'clone' ], [ $node, 'restored' ], [ $other, 'staging' ])
{
	my ($server, $database) = @$copy;
	$server->poll_query_until($database, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND datname = current_database()}) or die 'no manager';
	my $before = $server->safe_psql($database, 'SELECT max(run_at) FROM jobq.schedule_run');
	sleep 2.5;
	is($server->safe_psql($database, "SELECT max(run_at) = '$before' FROM jobq.schedule_run"), 't', "$database: nothing fires");
	is($server->safe_psql($database, 'SELECT state FROM jobq.schedules'), 'resting', "$database: and it says so");
	like($server->safe_psql($database, q{SELECT ok, message FROM jobq.health() WHERE check_name = 'schedules'}), qr/^f\|1 schedules rest.*adopt/, "$database: so does health()");
	is($server->safe_psql($database, q{SELECT count(*) > 0 FROM jobq.claim('default', 100)}), 't', "$database: workers work");
	like(($server->psql($database, q{SELECT jobq.schedule_job('new', '@daily', 't')}))[2], qr/WARNING:.*rest.*adopt/s, "$database: whoever makes another one is warned");
}
is(() = slurp_file($other->logfile) =~ /$rests/g, 1, 'one line in the log');
$other->safe_psql('staging', q{SELECT jobq.adopt()});
ok($other->poll_query_until('staging', q{SELECT count(*) > 1 FROM jobq.schedule_runs WHERE state = 'enqueued' AND noted_at > clock_timestamp() - interval '3 s'}), 'adopted, it fires');
is($other->safe_psql('staging', q{SELECT owner_oid = '"Weird ""Role"'::regrole, state FROM jobq.schedules JOIN jobq.schedule ON name = schedule WHERE name = 'tick'}), 't|active', 'for the owner of that name');
is($other->safe_psql('staging', q{SELECT count(*) - count(DISTINCT run_at) FROM jobq.schedule_run WHERE name = 'tick'}), '0', 'each instant once, also over the copy');
is($node->safe_psql('production', 'SELECT state FROM jobq.schedules'), 'active', 'production goes on');
$_->stop for $node, $other;
done_testing();
