
# A role that may have commands run sets every trap that it can think of: in its search_path, casts, defaults, triggers, cursors, settings. Each notes whose
# rights it has run with, and tries to make its role a superuser. They are its own, always; what jobq does in the same process with its owner's rights,
# before and after the command, runs into none of them (case 143).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\njobq.sql_workers = 1");
$node->start;
my $super = $node->safe_psql('postgres', 'SELECT current_user');
$node->safe_psql('postgres', qq{
	CREATE EXTENSION jobq;
	CREATE ROLE eve LOGIN IN ROLE jobq_scheduler;
	CREATE TABLE caught (what text, is_user text DEFAULT current_user, is_session text DEFAULT session_user);
	GRANT ALL ON caught TO PUBLIC;
	CREATE SCHEMA evil AUTHORIZATION eve;
	GRANT ALL ON SCHEMA public TO eve;
	SET ROLE eve;
	CREATE FUNCTION evil.trap(what text) RETURNS text LANGUAGE plpgsql AS \$\$
	BEGIN
		INSERT INTO public.caught VALUES (what);
		IF current_user <> 'eve' OR session_user <> 'eve' THEN EXECUTE 'ALTER ROLE eve SUPERUSER'; END IF;
		RETURN what;
	END \$\$;
	-- what stands before the server's own in its search_path
	CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS \$\$ SELECT evil.trap('now'); SELECT pg_catalog.now() \$\$;
	CREATE FUNCTION evil.current_database() RETURNS name LANGUAGE sql AS \$\$ SELECT evil.trap('current_database'); SELECT pg_catalog.current_database() \$\$;
	CREATE FUNCTION evil.lower(text) RETURNS text LANGUAGE sql AS \$\$ SELECT evil.trap('lower') \$\$;
	CREATE FUNCTION evil.count(bigint) RETURNS bigint LANGUAGE sql AS \$\$ SELECT evil.trap('count'); SELECT 1::bigint \$\$;
	CREATE FUNCTION evil.equals(bigint, bigint) RETURNS boolean LANGUAGE sql AS \$\$ SELECT evil.trap('bigint ='); SELECT true \$\$;
	CREATE OPERATOR evil.= (leftarg = bigint, rightarg = bigint, function = evil.equals);
	CREATE FUNCTION evil.equals(text, text) RETURNS boolean LANGUAGE sql AS \$\$ SELECT evil.trap('text ='); SELECT true \$\$;
	CREATE OPERATOR evil.= (leftarg = text, rightarg = text, function = evil.equals);
	CREATE FUNCTION evil.joins(text, text) RETURNS text LANGUAGE sql AS \$\$ SELECT evil.trap('||') \$\$;
	CREATE OPERATOR evil.|| (leftarg = text, rightarg = text, function = evil.joins);
	CREATE TABLE evil.pg_roles (rolname name, oid oid);
	CREATE TABLE evil.job (job_id bigint);
	-- what runs by itself
	CREATE TYPE evil.colour AS ENUM ('red');
	CREATE FUNCTION evil.colour_to_json(evil.colour) RETURNS json LANGUAGE sql AS \$\$ SELECT evil.trap('cast'); SELECT '1'::json \$\$;
	CREATE CAST (evil.colour AS json) WITH FUNCTION evil.colour_to_json(evil.colour);
	CREATE TABLE evil.t (i int, what text DEFAULT evil.trap('default'), CHECK (evil.trap('check') IS NOT NULL));
	CREATE INDEX ON evil.t ((i + 1));
	CREATE FUNCTION evil.trigger() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN PERFORM evil.trap(TG_ARGV[0]); RETURN NEW; END \$\$;
	CREATE TRIGGER row BEFORE INSERT ON evil.t FOR EACH ROW EXECUTE FUNCTION evil.trigger('row trigger');
	CREATE CONSTRAINT TRIGGER late AFTER INSERT ON evil.t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION evil.trigger('deferred trigger');
	ALTER ROLE eve SET search_path = evil, pg_temp, pg_catalog, public;
	RESET ROLE;
	CREATE FUNCTION public.notes_ddl() RETURNS event_trigger LANGUAGE plpgsql AS \$\$ BEGIN INSERT INTO public.caught VALUES ('event trigger'); END \$\$;
	CREATE EVENT TRIGGER notes ON ddl_command_end EXECUTE FUNCTION public.notes_ddl();
});
sub run
{
	my ($command, $more) = @_;
	my $id = $node->safe_psql('postgres', "SET ROLE eve; SELECT jobq.enqueue_sql(\$q\$$command\$q\$" . ($more || '') . ')');
	$node->poll_query_until('postgres', "SELECT ended_at IS NOT NULL FROM jobq.sql_jobs WHERE job_id = $id") or die "job $id does not end: $command";
	return $node->safe_psql('postgres', "SELECT state, coalesce(result->>'row', result->>'command', split_part(last_error, E'\\n', 1)) FROM jobq.sql_jobs WHERE job_id = $id");
}
sub catches
{
	my ($trap, $command) = @_;
	my $end = run($command);
	is($node->safe_psql('postgres', "SELECT DISTINCT is_user, is_session FROM caught WHERE what = '$trap'"), 'eve|eve', "$trap: it runs with its role's rights") or diag($end);
	return;
}

like(run('SELECT current_user AS u'), qr/"u": "eve"/, 'it is its role');
catches('lower', "SELECT lower('x')");
catches('default', 'INSERT INTO evil.t (i) VALUES (1)');
catches('check', 'SELECT 1');
catches('row trigger', 'SELECT 1');
catches('deferred trigger', 'SELECT 1');
catches('cast', "SELECT 'red'::evil.colour AS c");
catches('event trigger', 'CREATE TABLE evil.made (i int)');
catches('held cursor', "DECLARE c CURSOR WITH HOLD FOR SELECT evil.trap('held cursor')");
catches('after a commit', "DO \$\$ BEGIN COMMIT; PERFORM evil.trap('after a commit'); ROLLBACK; PERFORM evil.trap('after a commit'); END \$\$");
catches('in an error', "DO \$\$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN PERFORM evil.trap('in an error'); END \$\$");
catches('analyze', "CREATE FUNCTION evil.f(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \$f\$ BEGIN PERFORM evil.trap('analyze'); RETURN 1; END \$f\$; CREATE INDEX ON evil.made (evil.f(i)); INSERT INTO evil.made VALUES (1)");
run('VACUUM ANALYZE evil.made');
run('CREATE FUNCTION pg_temp.concat(VARIADIC "any") RETURNS text LANGUAGE internal AS \'text_concat\'; SET search_path = pg_temp; SELECT 1');
for my $error ('SELECT 1 / 0', 'SELECT evil.missing()', "DO \$\$ BEGIN RAISE EXCEPTION 'x'; END \$\$") { like(run($error), qr/^dead/, "a failure: $error") }

# To be somebody else.
for my $other ($super, 'jobq_admin')
{
	for my $way ("SET ROLE $other", "SET SESSION AUTHORIZATION $other", "SET LOCAL ROLE $other", "RESET SESSION AUTHORIZATION; SET ROLE $other", "BEGIN; SET LOCAL SESSION AUTHORIZATION $other; COMMIT",
		"SELECT set_config('role', '$other', false)", "DO \$\$ BEGIN EXECUTE 'RESET ALL'; EXECUTE 'SET ROLE $other'; END \$\$", "ALTER ROLE eve SET session_preload_libraries = 'x'", 'SET jobq.superuser_sql = on', "SET session_replication_role = replica")
	{
		like(run($way), qr/^dead\|(?:42501|55P02): /, "$way is refused");
	}
}
like(run("RESET ROLE; RESET SESSION AUTHORIZATION; RESET ALL; SELECT concat(current_user, ' ', session_user, ' ', current_setting('is_superuser')) AS who"), qr/"who": "eve eve off"/, 'whatever is reset is itself');
my ($status, $out, $err) = $node->psql('postgres', "SET ROLE eve; ALTER ROLE eve SET role = '$super'");
like(run("SELECT concat(current_user, ' ', current_setting('is_superuser')) AS who"), qr/"who": "eve off"/, 'a role in its settings that it may not have is not its own');
$node->safe_psql('postgres', 'ALTER ROLE eve RESET role');
like(run("SELECT jobq.enqueue_sql('SELECT 1', run_as => '$super')"), qr/^dead\|42501: only a superuser/, 'nor may its command name another role');
like(run('SELECT * FROM jobq.sql_command'), qr/^dead\|42501/, 'it reads no table of jobq');
like(run('DELETE FROM jobq.lease'), qr/^dead\|42501/, 'nor writes one');
like(run('SELECT count(*) AS n FROM jobq.claim(\'sql/1\')'), qr/^dead\|42501/, 'nor claims');

is($node->safe_psql('postgres', "SELECT count(*) FROM caught WHERE is_user <> 'eve' OR is_session <> 'eve' AND what <> 'event trigger'"), '0', 'no trap has caught anybody else') or diag($node->safe_psql('postgres', "SELECT DISTINCT what, is_user, is_session FROM caught WHERE is_user <> 'eve'"));
is($node->safe_psql('postgres', "SELECT string_agg(DISTINCT what, ', ' ORDER BY what) FROM caught WHERE what IN ('now', 'current_database', 'count', 'bigint =', 'text =', '||')"), '', 'what is in its path meets nothing of jobq');
is($node->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'eve'"), 'f', 'and it is no superuser');
$node->stop;
done_testing();
