
# The server stops half a second before an instant and comes back after the next one: each instant has one row, and what is done about it is what the
# schedule's catch_up says (promise 7, case 4). @reboot fires once after each start.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);

my $period = 4;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\ntimezone = 'UTC'");
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION jobq;
	SELECT jobq.schedule_job(c, '*/$period * * * * *', c, overlap => 'allow', catch_up => c) FROM unnest('{none,once,all}'::text[]) c;
	SELECT jobq.schedule_job('interval', '$period seconds', 'interval', overlap => 'allow', catch_up => 'all');
	SELECT jobq.schedule_job('boot', '\@reboot', 'boot', overlap => 'allow');
});
ok($node->poll_query_until('postgres', q{SELECT count(DISTINCT schedule) = 4 FROM jobq.schedule_runs}), 'all have fired');

# The clock of the test is the server's.
my $instant = (int(time / $period) + 2) * $period;
sleep $instant - 0.5 - time;
$node->stop('fast');
my $down = time;
sleep $instant + $period + 1 - time;
my $up = time;
$node->start;
ok($down < $instant && $up > $instant + $period, 'the server was down at two instants');

# Both instants, and the first one after the start.
my $missed = "run_at IN (to_timestamp($instant), to_timestamp($instant + $period))";
ok($node->poll_query_until('postgres', "SELECT count(*) = 3 FROM jobq.schedule_runs WHERE run_at = to_timestamp($instant + 2 * $period)"), 'they go on');
my $rows = sub { $node->safe_psql('postgres', "SELECT string_agg(state || ' ' || (job_id IS NOT NULL), ', ' ORDER BY run_at) FROM jobq.schedule_runs WHERE schedule = '$_[0]' AND $missed") };
is($rows->('none'), 'missed false, missed false', 'none: both are missed');
is($rows->('once'), 'missed false, enqueued true', 'once: the last one is made up for');
is($rows->('all'), 'enqueued true, enqueued true', 'all: both are');
is($node->safe_psql('postgres', q{SELECT DISTINCT reason FROM jobq.schedule_runs WHERE state = 'missed'}), 'the server was away, or too busy to fire it in time', 'with the reason');
is($node->safe_psql('postgres', q{SELECT count(*) FROM jobq.schedule_runs WHERE state = 'enqueued' AND schedule <> 'boot'}),
	$node->safe_psql('postgres', q{SELECT count(*) FROM jobq.jobs WHERE task <> 'boot'}), 'a job for each that is enqueued');

# Instants that are a period apart, without a gap: none is left out.
my $gaps = qq{SELECT count(*) FROM (SELECT run_at - lag(run_at) OVER (PARTITION BY schedule ORDER BY run_at) AS gap FROM jobq.schedule_runs WHERE schedule <> 'boot') g WHERE gap <> '$period s'};
is($node->safe_psql('postgres', $gaps), '0', 'no instant is without a row');
is($node->safe_psql('postgres', q{SELECT run_at = pg_postmaster_start_time(), state, (SELECT count(*) FROM jobq.jobs WHERE task = 'boot') FROM jobq.schedule_runs WHERE schedule = 'boot'}),
	't|enqueued|1', '@reboot fired at the start, and not when it was made');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'jobq manager'});
ok($node->poll_query_until('postgres', "SELECT count(*) = 3 FROM jobq.schedule_runs WHERE run_at = to_timestamp($instant + 3 * $period)"), 'a new manager goes on');
is($node->safe_psql('postgres', q{SELECT count(*) FROM jobq.jobs WHERE task = 'boot'}), '1', '@reboot does not fire for it');
$node->restart;
ok($node->poll_query_until('postgres', q{SELECT count(*) = 2 FROM jobq.jobs WHERE task = 'boot'}), 'but for the next start');
$node->stop;
done_testing();
