
# Each check of health() is content in a healthy server and says what is wrong in a sick one; that of the preloaded library stands in 001,
# that of the version in 006, that of the worker slots in 021 (cases 47, 82, 177, 179).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\nmax_prepared_transactions = 5\nautovacuum = off\njobq.sweep_grace = '0'");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN');
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	GRANT jobq_reader TO watcher;
	SELECT jobq.create_queue('q', lease => '1 h');
});
ok($node->poll_query_until('postgres', "SELECT ok FROM jobq.health() WHERE check_name = 'last sweep'"), 'a manager is at work');

sub row { my ($check, $database) = @_; return $node->safe_psql($database || 'postgres', "SELECT ok, message FROM jobq.health() WHERE check_name = '$check'") }
sub says { my ($check, $pattern, $what) = @_; like(row($check), $pattern, $what); return }

my $manager = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq manager'");
is($node->safe_psql('postgres', "SELECT string_agg(check_name, ', ' ORDER BY check_name) FROM jobq.health()"),
	'due jobs, expired leases, groups, lanes, last sweep, manager, oldest snapshot, preloaded, prepared transactions, schedules, sql jobs, version, worker slots', 'the checks');
is($node->safe_psql('postgres', "SELECT string_agg(check_name || ': ' || message, E'\\n') FROM jobq.health() WHERE ok IS DISTINCT FROM true"), '', 'a healthy server: all are content');
is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.health() WHERE message IS NULL OR message = ''"), '0', 'each has a message');
says('manager', qr/^t\|process $manager .*\d+\.\d s$/, 'the manager');
says('last sweep', qr/^t\|the manager was last at work \d+\.\d s ago$/, 'its last sweep');
says('due jobs', qr/^t\|no job is due\b/, 'no job is due');
says('expired leases', qr/^t\|no lease has expired\b/, 'no lease has expired');
says('oldest snapshot', qr/^t\|nobody else holds a snapshot$/, 'no snapshot');
says('prepared transactions', qr/^t\|there is no prepared transaction$/, 'no prepared transaction');
says('worker slots', qr/^t\|\d+ of 8 .*free/, 'worker slots');
says('lanes', qr/^t\|0 of 2048 lanes \(jobq\.max_lanes\) are in use$/, 'lanes');
is($node->safe_psql('postgres', 'SELECT count(*) > 5 FROM jobq.health()', extra_params => [ '-U', 'watcher' ]), 't', 'a member of jobq_reader may look');

# Of these only the message changes at once: what is short is no illness.
my $session = $node->background_psql('postgres');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
says('oldest snapshot', qr/^t\|process $pid \(.*idle in transaction.*\) holds a snapshot .* \d+\.\d s( ago)?$/, 'who holds the oldest snapshot');
is($node->safe_psql('postgres', "SELECT ok, message ~ 'process $pid ' FROM jobq.health() WHERE check_name = 'oldest snapshot'", extra_params => [ '-U', 'watcher' ]), 't|t', 'a reader sees it too');
$session->query_safe('COMMIT');
$node->safe_psql('postgres', "BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'it''s forgotten'");
says('prepared transactions', qr/^t\|1 prepared transaction.*it'+s forgotten.* \d+\.\d s/, 'the oldest prepared transaction');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'it''s forgotten'");

# A manager that does not move: what it should have done is late, by more than ten seconds.
kill 'STOP', $manager;
$node->safe_psql('postgres', q{
	SELECT jobq.enqueue(t, queue => 'q') FROM unnest('{a,b}'::text[]) t;
	SELECT count(*) FROM jobq.claim('q', 2);
	SELECT jobq.enqueue('due', queue => 'q', delay => '1 h');
	UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '5 s';
	UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '5 s'});
says('due jobs', qr/^t\|a job is due .*\b[5-9]\.\d s\b/, 'a job that is due for five seconds is not late');
says('expired leases', qr/^t\|2 leases have expired.*\b[5-9]\.\d s ago/, 'nor are such leases');
$node->safe_psql('postgres', q{
	UPDATE jobq.delayed SET run_at = clock_timestamp() - interval '11 s';
	UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '11 s'});
says('due jobs', qr/^f\|a job is due .*\b1\d\.\d s\b/, 'after ten it is');
says('expired leases', qr/^f\|2 leases have expired.*\b1\d\.\d s ago/, 'and so are they');
ok($node->poll_query_until('postgres', "SELECT NOT ok AND message ~ '^the manager was last at work 1\\d\\.\\d s ago' FROM jobq.health() WHERE check_name = 'last sweep'"), 'and the manager is seen to stand still');
says('manager', qr/^t\|process $manager /, 'though it is there');
kill 'CONT', $manager;
ok($node->poll_query_until('postgres', "SELECT ok FROM jobq.health() WHERE check_name = 'last sweep'"), 'it moves again');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($manager)"); # rows changed by hand are found by a new one at once
ok($node->poll_query_until('postgres', 'SELECT bool_and(ok) FROM jobq.health()'), 'all is well again');

# A job that no claim would find: put below the lane's cursor by hand, it is found by the manager.
$node->safe_psql('postgres', q{
	SELECT jobq.create_queue('by hand');
	SELECT jobq.enqueue(t, queue => 'by hand') FROM unnest('{a,b}'::text[]) t;
	SELECT count(*) FROM jobq.claim('by hand', 2);
	SELECT count(*) FROM jobq.claim('by hand');
	WITH given_back AS (DELETE FROM jobq.lease USING jobq.queue q WHERE q.queue_id = lease.queue_id AND name = 'by hand' RETURNING lease.*)
	INSERT INTO jobq.ready (queue_id, priority, tag, job_id, attempt, tries, crashes) SELECT queue_id, 5, 1, job_id, attempt, tries, crashes FROM given_back LIMIT 1});
ok($node->poll_query_until('postgres', "SELECT NOT ok AND message ~ '^claims would have missed jobs 1 times' FROM jobq.health() WHERE check_name = 'lanes'"), 'a cursor was too high');
is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('by hand', 2)"), '1', 'and the job is claimed');
$node->restart;
ok($node->poll_query_until('postgres', 'SELECT bool_and(ok) FROM jobq.health()'), 'a restart forgets it');
$session = $node->background_psql('postgres');

# No manager, for each reason that there is.
$node->append_conf('postgresql.conf', 'jobq.enabled = off');
$node->reload;
ok($node->poll_query_until('postgres', "SELECT NOT ok AND message ~ 'jobq.enabled is off' FROM jobq.health() WHERE check_name = 'manager'"), 'no manager: it is switched off');
is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.health() WHERE check_name = 'last sweep'"), '0', 'then there is no last sweep to speak of');
$node->append_conf('postgresql.conf', 'jobq.enabled = on');
$node->reload;
$node->safe_psql('postgres', 'CREATE DATABASE model');
$node->safe_psql('model', 'CREATE EXTENSION jobq');
$node->safe_psql('postgres', 'ALTER DATABASE model IS_TEMPLATE true');
ok($node->poll_query_until('model', "SELECT NOT ok AND message ~ 'template' FROM jobq.health() WHERE check_name = 'manager'"), 'no manager: the database is a template');
my $launcher = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq launcher'");
kill 'STOP', $launcher;
$manager = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND datname = 'postgres'");
$node->safe_psql('postgres', "SELECT pg_terminate_backend($manager)");
ok($node->poll_query_until('postgres', "SELECT NOT ok AND message ~ 'not come up yet' FROM jobq.health() WHERE check_name = 'manager'"), 'no manager: the launcher does not move');
kill 'CONT', $launcher;
ok($node->poll_query_until('postgres', 'SELECT bool_and(ok) FROM jobq.health()'), 'all is well in the end');
$session->quit;
$node->stop;
done_testing();
