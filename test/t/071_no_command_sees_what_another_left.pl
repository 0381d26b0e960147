
# Two jobs of one role in one process: the second one meets a session as fresh as a client's (case 152), with the role's settings as they are by
# then. What a role takes on by its settings comes with a process of its own.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\njobq.sql_workers = 1");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	CREATE ROLE ann LOGIN IN ROLE jobq_scheduler;
	CREATE ROLE other;
	GRANT other TO ann;
	CREATE TABLE seen (job text, pid int DEFAULT pg_backend_pid(), what text);
	GRANT ALL ON seen TO PUBLIC;
});

# Runs the command, waits for its end, and returns its result or error.
sub run
{
	my ($command) = @_;
	my $id = $node->safe_psql('postgres', "SET ROLE ann; SELECT jobq.enqueue_sql(\$q\$$command\$q\$)");
	$node->poll_query_until('postgres', "SELECT ended_at IS NOT NULL FROM jobq.sql_jobs WHERE job_id = $id") or die "job $id does not end";
	return $node->safe_psql('postgres', "SELECT coalesce(result->>'row', result->>'command', last_error) FROM jobq.sql_jobs WHERE job_id = $id");
}
my $look = q{SELECT pg_backend_pid() AS pid, current_user AS is_user, session_user AS is_session, current_setting('search_path') AS path, current_setting('work_mem') AS mem,
	coalesce(current_setting('my.own', true), '') AS own, (SELECT count(*) FROM pg_prepared_statements) AS prepared, (SELECT count(*) FROM pg_cursors WHERE name <> '') AS cursors,
	(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS locks, to_regclass('pg_temp.mine') AS temporary, (SELECT count(*) FROM pg_listening_channels()) AS channels,
	current_setting('statement_timeout') AS timeout, current_setting('default_transaction_isolation') AS isolation};

my $fresh = run($look);
like($fresh, qr/"is_user": "ann".*|"is_session": "ann"/, 'it is its role');
run(q{SET ROLE other; SET search_path = evil; SET work_mem = '2MB'; SET my.own = 'x'; SET statement_timeout = '1h'; SET default_transaction_isolation = 'serializable';
	CREATE TEMP TABLE mine (i int); CREATE FUNCTION pg_temp.lower(text) RETURNS text LANGUAGE sql RETURN 'evil'; PREPARE p AS SELECT 1; DECLARE c CURSOR WITH HOLD FOR SELECT 1;
	SELECT pg_advisory_lock(1); SELECT nextval('s')});
run(q{SET ROLE other; SET work_mem = '2MB'; PREPARE p AS SELECT 1; SELECT pg_advisory_lock(1); SELECT 1 / 0});
run(q{SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY});
is(run(q{BEGIN; SET LOCAL ROLE other; DECLARE c CURSOR WITH HOLD FOR SELECT 1; CREATE TEMP TABLE mine (i int); PREPARE p AS SELECT 1; SELECT pg_advisory_lock(2); COMMIT}), 'COMMIT', 'one leaves all that a session can keep');
is(run($look), $fresh, 'another one sees none of it, in the same process');
is(run(q{SET SESSION AUTHORIZATION other}), '42501: permission denied to set session authorization "other"', 'it gets to be nobody else');
is(run(q{RESET ROLE; RESET SESSION AUTHORIZATION; INSERT INTO seen SELECT 'reset', DEFAULT, current_user || session_user}), '42601: DEFAULT is not allowed in this context', 'a mistake in a test is an error too');
is(run(q{SET SESSION AUTHORIZATION DEFAULT; SET ROLE NONE; SELECT current_user || ' ' || session_user AS who}), '{"who": "ann ann"}', 'and comes back to no more than itself');

$node->safe_psql('postgres', "ALTER ROLE ann SET work_mem = '5MB'; ALTER ROLE ann SET search_path = 'new'; ALTER ROLE ann SET default_transaction_isolation = 'serializable'");
my $changed = run($look);
like($changed, qr/"mem": "5MB".*/, 'the next command has the role\'s new settings');
like($changed, qr/"path": "new"/, 'all of them');
like($changed, qr/"isolation": "serializable"/, 'each');
$node->safe_psql('postgres', "ALTER ROLE ann SET default_transaction_read_only = on");
like(run('CREATE TEMP TABLE made (i int); INSERT INTO seen VALUES (1)'), qr/^25006/, 'a role that only reads only reads');
is(run('SELECT 1 AS one'), '{"one": 1}', 'and its jobs end all the same');
$node->safe_psql('postgres', "ALTER ROLE ann RESET ALL; ALTER ROLE ann SET statement_timeout = '100ms'");
like(run('SELECT pg_sleep(10)'), qr/^57014: canceling statement due to statement timeout/, 'its statement_timeout is kept to');
is(run("SET statement_timeout = 0; SELECT pg_sleep(0.3)"), '{"pg_sleep": ""}', 'unless the command says otherwise');
$node->safe_psql('postgres', "ALTER ROLE ann RESET ALL; ALTER ROLE ann SET role = other");
is(run('SELECT current_user || session_user AS who'), '{"who": "otherann"}', 'a role that takes on another one');
is(run('SELECT current_user || session_user AS who'), '{"who": "otherann"}', 'does so each time');
$node->safe_psql('postgres', "ALTER DATABASE postgres SET work_mem = '6MB'; ALTER ROLE ann RESET ALL");
is(run("SELECT current_user || session_user || current_setting('work_mem') AS who"), '{"who": "annann6MB"}', 'the database has settings too');
is(run("SELECT current_setting('application_name') AS n, current_setting('is_superuser') AS s"), '{"n": "jobq executor", "s": "off"}', 'it is known by its name');
$node->stop;
done_testing();
