
# A role may log in when it makes a SQL job, and not when the job is due: the job dies untried with the reason, its schedule stops (case 146). One
# whose connection limit is reached waits. Whoever writes into our tables may name no other role than the one that the queue is for (case 143).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_line_prefix = '%m [%p] %b '");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	CREATE TABLE effect (what text);
	GRANT ALL ON effect TO PUBLIC;
	REVOKE CONNECT ON DATABASE postgres FROM PUBLIC;
});

sub asks { my ($sql) = @_; return $node->safe_psql('postgres', $sql) }
sub becomes { my ($sql, $name) = @_; ok($node->poll_query_until('postgres', $sql), $name); return }
sub new_role { my ($role, $more) = @_; asks("CREATE ROLE $role LOGIN IN ROLE jobq_scheduler; GRANT CONNECT ON DATABASE postgres TO $role"); return }
sub due_in_an_hour { my ($role) = @_; return asks("SET ROLE $role; SELECT jobq.enqueue_sql('INSERT INTO effect VALUES (''$role'')', delay => '1 h', max_attempts => 3)") }
sub becomes_due { my ($id) = @_; asks("SELECT jobq.reschedule($id, now())"); return }
sub ended { my ($id) = @_; return asks("SELECT state, attempt, tries, reason, last_error FROM jobq.sql_jobs WHERE job_id = $id") }

# Each loses what it needs while its job waits.
my %loses = (
	no_login => ['ALTER ROLE no_login NOLOGIN', 'role "no_login" is not permitted to log in'],
	no_connect => ['REVOKE CONNECT ON DATABASE postgres FROM no_connect', 'role "no_connect" may not connect to this database'],
	no_connection => ['ALTER ROLE no_connection CONNECTION LIMIT 0', 'role "no_connection" has a connection limit of 0'],
	no_more => ['REVOKE CONNECT ON DATABASE postgres FROM no_more; DROP ROLE no_more', 'role "no_more" does not exist']);
for my $role (sort keys %loses)
{
	my ($loss, $reason) = @{ $loses{$role} };
	new_role($role);
	my $id = due_in_an_hour($role);
	asks("SET ROLE $role; SELECT jobq.schedule('of $role', '0 0 1 1 *', 'INSERT INTO effect VALUES (''$role'')')");
	asks($loss);
	becomes_due($id);
	becomes("SELECT ended_at IS NOT NULL FROM jobq.sql_jobs WHERE job_id = $id", "$role: its job ends");
	is(ended($id), "dead|0|0|$reason|", "$role: untried, with the reason");
	asks("SELECT jobq.alter_schedule('of $role', schedule => '* * * * * *')");
	becomes("SELECT state = 'stopped' FROM jobq.schedules WHERE schedule = 'of $role'", "$role: its schedule stops");
	like(asks("SELECT reason FROM jobq.schedules WHERE schedule = 'of $role'"), qr/role "?\S+"? .*(log in|connect|limit|exist)/, "$role: with the reason");
}
is(asks('SELECT count(*) FROM effect'), '0', 'none of them ran');
unlike(slurp_file($node->logfile), qr/jobq executor started/, 'nor was there a process for one');

# While an executor of the role is there: it leaves before it takes the job.
new_role('leaver');
my $first = due_in_an_hour('leaver');
my $second = due_in_an_hour('leaver');
becomes_due($first);
becomes("SELECT state = 'completed' FROM jobq.sql_jobs WHERE job_id = $first", 'an executor is there, and waits');
asks('ALTER ROLE leaver NOLOGIN');
becomes_due($second);
becomes("SELECT state = 'dead' FROM jobq.sql_jobs WHERE job_id = $second", 'it takes no more');
is(ended($second), 'dead|0|0|role "leaver" is not permitted to log in|', 'and the manager says why');

# While its command runs: that one ends as it would in a session.
new_role('mid');
my $mid = asks("SET ROLE mid; SELECT jobq.enqueue_sql('SELECT pg_sleep(1)')");
becomes("SELECT state = 'running' FROM jobq.sql_jobs WHERE job_id = $mid", 'a command runs');
asks('REVOKE CONNECT ON DATABASE postgres FROM mid; DROP ROLE mid');
becomes("SELECT ended_at IS NOT NULL FROM jobq.sql_jobs WHERE job_id = $mid", 'while its role is dropped');
is(asks("SELECT state FROM jobq.sql_jobs WHERE job_id = $mid"), 'completed', 'and is completed');

# A limit that is reached: no try, no process, until there is a place.
new_role('many');
asks('ALTER ROLE many CONNECTION LIMIT 1');
my $session = $node->background_psql('postgres', extra_params => ['-U', 'many']);
$session->query_safe('SELECT 1');
my $waits = asks("SET ROLE many; SELECT jobq.enqueue_sql('INSERT INTO effect VALUES (''many'')')");
becomes("SELECT NOT ok AND message LIKE '%and wait: its role has as many connections as its limit allows' FROM jobq.health() WHERE check_name = 'sql jobs'", 'health() says why it waits');
is(ended($waits), 'ready|0|0||', 'untried');
$session->quit;
becomes("SELECT state = 'completed' FROM jobq.sql_jobs WHERE job_id = $waits", 'it runs when there is a place');
my $two = asks("SET ROLE many; SELECT jobq.enqueue_sql('SELECT pg_sleep(0.3)')");
my $three = asks("SET ROLE many; SELECT jobq.enqueue_sql('SELECT pg_sleep(0.3)')");
becomes("SELECT count(*) = 2 FROM jobq.sql_jobs WHERE job_id IN ($two, $three) AND state = 'completed'", 'executors count for the limit: one after the other');
is(asks("SELECT f2.claimed_at >= f1.ended_at FROM jobq.sql_jobs f1, jobq.sql_jobs f2 WHERE f1.job_id = $two AND f2.job_id = $three"), 't', 'and never two at once');

# Superusers' commands can be forbidden, and then wait for nothing.
my $super = asks("SELECT jobq.enqueue_sql('INSERT INTO effect VALUES (''super'')', delay => '1 h')");
asks('ALTER SYSTEM SET jobq.superuser_sql = off');
asks('SELECT pg_reload_conf()');
becomes("SELECT NOT current_setting('jobq.superuser_sql')::boolean", 'superusers may not');
becomes_due($super);
becomes("SELECT state = 'dead' FROM jobq.sql_jobs WHERE job_id = $super", 'what one has made before dies');
like(ended($super), qr/^dead\|0\|0\|role "\S+" is a superuser, and jobq.superuser_sql is off\|$/, 'with the reason');
my ($status, $out, $err) = $node->psql('postgres', "SELECT jobq.enqueue_sql('SELECT 1')");
like($err, qr/ERROR:  cannot run SQL jobs: role "\S+" is a superuser, and jobq.superuser_sql is off\nHINT/, 'and none is made');
asks('ALTER ROLE leaver LOGIN');
my $became = due_in_an_hour('leaver');
asks('ALTER ROLE leaver SUPERUSER');
becomes_due($became);
becomes("SELECT state = 'dead' FROM jobq.sql_jobs WHERE job_id = $became", 'nor does one run whose role has become one');
asks('ALTER ROLE leaver NOSUPERUSER');

# Nobody has a grant on our tables; and who writes there all the same names no other role than the queue's.
new_role('eve');
for my $table (qw(sql_command schedule job queue ready lease))
{
	($status, $out, $err) = $node->psql('postgres', "SET ROLE eve; DELETE FROM jobq.$table");
	like($err, qr/permission denied/, "nobody writes into jobq.$table");
}
my $forged = due_in_an_hour('eve');
asks("UPDATE jobq.sql_command SET role_oid = (SELECT oid FROM pg_roles WHERE rolname = 'many'), role_name = 'many' WHERE job_id = $forged");
becomes_due($forged);
becomes("SELECT state = 'dead' FROM jobq.jobs FULL JOIN jobq.history USING (job_id, state) WHERE job_id = $forged", 'a job in the queue of another role');
is(asks("SELECT attempt, (SELECT count(*) FROM effect WHERE what = 'eve') FROM jobq.history WHERE job_id = $forged"), '1|0', 'does not run as either');
like(asks("SELECT error FROM jobq.failure WHERE job_id = $forged"), qr/its command is another role's/, 'and says why');
$node->stop;
done_testing();
