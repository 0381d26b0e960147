
# Settings that are meant for clients (ALTER DATABASE, ALTER ROLE) do not reach the manager: it promotes and sweeps with each of them. What the
# server as a whole says counts: read-only is respected, said once, and over when it is over (cases 29, 102, 111, 119, 142).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1); # else no commit waits for a standby
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\njobq.sweep_grace = '0'");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE app');
$node->safe_psql('postgres', 'CREATE ROLE low');
$node->safe_psql('app', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', lease => '1 s', max_crashes => 1);
	CREATE SCHEMA evil;
	CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS $$SELECT 'infinity'::timestamptz$$;
	CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT '-infinity'::timestamptz$$;
	CREATE FUNCTION evil.never(a bigint, b bigint) RETURNS boolean LANGUAGE sql AS $$SELECT false$$;
	CREATE FUNCTION evil.never(a timestamptz, b timestamptz) RETURNS boolean LANGUAGE sql AS $$SELECT false$$;
	CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.never);
	CREATE OPERATOR evil.<= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = evil.never);
	CREATE TABLE evil.pg_settings (name text, source text);
	CREATE FUNCTION public.pid() RETURNS int LANGUAGE sql SET search_path = pg_catalog AS
		$$SELECT max(pid) FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND datname = 'app'$$;
});

# This test's own sessions are clients that know how to help themselves.
local $ENV{PGOPTIONS} = join(' ', map { "-c $_" } 'default_transaction_isolation=read\ committed', qw(role=none statement_timeout=0 lock_timeout=0 idle_session_timeout=0
	idle_in_transaction_session_timeout=0 default_transaction_read_only=off
	default_transaction_deferrable=off search_path=pg_catalog session_replication_role=origin row_security=on synchronous_commit=local
	TimeZone=UTC DateStyle=ISO IntervalStyle=postgres));

sub new_manager
{
	my $pid = $node->safe_psql('app', 'SELECT public.pid()');
	$node->safe_psql('app', "SELECT pg_terminate_backend($pid)") if $pid ne '';
	$node->poll_query_until('app', "SELECT public.pid() <> @{[ $pid || 0 ]}") or die 'no manager comes';
	return;
}

# One job becomes ready; another one, whose lease ran out while there was no manager or while it came up, dies.
sub works
{
	my ($what) = @_;
	$node->safe_psql('app', q{
		SELECT jobq.enqueue('due', queue => 'q', delay => '1 ms');
		SELECT jobq.enqueue('expired', queue => 'q', priority => 0);
		SELECT job_id FROM jobq.claim('q');
		UPDATE jobq.lease SET expires_at = clock_timestamp()});
	new_manager();
	ok($node->poll_query_until('app', "SELECT (SELECT count(*) FROM jobq.delayed) = 0 AND (SELECT count(*) FROM jobq.lease) = 0 AND (SELECT count(*) FROM jobq.dead_jobs) = 1"), $what);
	$node->safe_psql('app', q{SELECT jobq.drop_queue('q', force => true); SELECT jobq.create_queue('q', lease => '1 s', max_crashes => 1)});
	return;
}

my @hostile = (
	"default_transaction_read_only = on", "default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on",
	"statement_timeout = '1 ms'", "lock_timeout = '1 ms'", "idle_in_transaction_session_timeout = '1 ms'", "idle_session_timeout = '1 ms'",
	"search_path = evil, pg_catalog", "session_replication_role = 'replica'", "row_security = off", "role = 'low'",
	"TimeZone = 'Asia/Kathmandu'", "DateStyle = 'SQL, DMY'", "IntervalStyle = 'sql_standard'",
	"plan_cache_mode = 'force_custom_plan'", "temp_file_limit = 0", "work_mem = '64kB'");
works('as a rule');
for my $setting (@hostile[0 .. 10])
{
	my ($name) = split / /, $setting;
	$node->safe_psql('postgres', "ALTER DATABASE app SET $setting");
	works("ALTER DATABASE ... SET $setting");
	$node->safe_psql('postgres', "ALTER DATABASE app RESET $name");
}
$node->safe_psql('postgres', "ALTER DATABASE app SET $_") for @hostile;
works('all of them and more at once');
$node->safe_psql('postgres', 'ALTER DATABASE app RESET ALL');
$node->safe_psql('postgres', "ALTER ROLE postgres SET $_") for grep { !/^role/ } @hostile;
works('and for the role instead');
$node->safe_psql('postgres', "ALTER ROLE postgres IN DATABASE app SET $_") for @hostile;
works('and for the role in the database');
$node->safe_psql('postgres', $_) for 'ALTER ROLE postgres RESET ALL', 'ALTER ROLE postgres IN DATABASE app RESET ALL';
my @bad = grep { /^\S+ \S+ \S+ \[\d+\] (ERROR|FATAL|PANIC|WARNING):|jobq (manager|launcher): cannot/ } split /\n/, slurp_file($node->logfile);
is("@bad", '', 'no error in the log');

# A synchronous standby that is not there: a client's commit waits for it, the manager's does not.
$node->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
$node->reload;
my $client = $node->background_psql('postgres');
$client->query_until(qr/begun/, "\\echo begun\nSET synchronous_commit = on; CREATE TABLE public.waits ();\n");
$node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')") or die 'no commit waits';
works('a synchronous standby that is not there');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
$node->reload;
$client->quit;

# The whole server is read-only, as hosts do it when the disk is full: one line, no work, and no more than that. All three chores have
# something to do.
sub complaints { my ($from) = @_; return scalar(() = substr(slurp_file($node->logfile), $from) =~ /jobq manager: .*default_transaction_read_only is on/g) }

my $from = -s $node->logfile;
$node->safe_psql('postgres', "ALTER SYSTEM SET $_") for 'default_transaction_read_only = on', 'jobq.enabled = off';
$node->reload;
$node->poll_query_until('app', 'SELECT public.pid() IS NULL') or die;
my $due = "SELECT (SELECT count(*) FROM jobq.delayed), (SELECT count(*) FROM jobq.lease), (SELECT count(*) FROM jobq.history WHERE state = 'completed')";
$node->safe_psql('app', q{
	SELECT jobq.alter_queue('q', keep_completed => '1 ms');
	SELECT jobq.enqueue(t, queue => 'q') FROM unnest('{expired,finished}'::text[]) t;
	SELECT count(*) FROM jobq.claim('q', 2);
	SELECT jobq.complete(job_id, attempt) FROM jobq.jobs WHERE task = 'finished';
	UPDATE jobq.lease SET expires_at = clock_timestamp();
	SELECT jobq.enqueue('due', queue => 'q', delay => '1 ms');
});
$node->safe_psql('postgres', 'ALTER SYSTEM RESET jobq.enabled');
$node->reload;
$node->wait_for_log(qr/jobq manager: .*default_transaction_read_only is on/, $from);
my $until = time + 3;
my $changed = 0;
my $pid = $node->safe_psql('app', 'SELECT public.pid()');
while (time < $until)
{
	$changed++ if $node->safe_psql('app', $due) ne '1|1|1';
	select(undef, undef, undef, 0.3);
}
is($changed, 0, 'the server is read-only: nothing is done');
is(complaints($from), 1, 'and it is said once');
is($node->safe_psql('app', 'SELECT public.pid()'), $pid, 'the manager is there');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET default_transaction_read_only');
$node->reload;
ok($node->poll_query_until('app', $due, '0|0|0'), 'over: it goes on');

# The same under a manager that is at work.
$from = -s $node->logfile;
$node->safe_psql('postgres', 'ALTER SYSTEM SET default_transaction_read_only = on');
$node->reload;
for my $try (1 .. 100)
{
	last if complaints($from);
	$node->safe_psql('app', "SELECT jobq.enqueue('due', queue => 'q', delay => '1 ms')");
	select(undef, undef, undef, 0.1);
}
is(complaints($from), 1, 'again: it is said again');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET default_transaction_read_only');
$node->reload;
ok($node->poll_query_until('app', $due, '0|0|0'), 'over again: it goes on');
is($node->safe_psql('app', 'SELECT public.pid()'), $pid, 'the same manager all the time');
$node->stop;
done_testing();
