
# Without shared_preload_libraries the library loads silently (pg_upgrade loads it), and CREATE EXTENSION and every function stop
# with 55000 and a hint that says exactly what to put where. health() answers, and says just that. Dump and DROP EXTENSION work all
# the same.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

delete $ENV{TEMP_CONFIG};
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;

my ($code, $out, $err) = $node->psql('postgres', "LOAD 'jobq'; SELECT 1");
is($code, 0, 'the library loads without the preload');
is($out, '1', 'and the session goes on');
is($err, '', 'and says nothing');

($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nCREATE EXTENSION jobq");
isnt($code, 0, 'CREATE EXTENSION stops');
like($err, qr/ERROR:\s+55000:/, 'with 55000');
like($err, qr/HINT:.*shared_preload_libraries = 'jobq'.*postgresql\.conf.*restart/s, 'the hint says what to put where and what then');
is( $node->safe_psql('postgres', q{SELECT (SELECT count(*) FROM pg_extension WHERE extname = 'jobq')
      + (SELECT count(*) FROM pg_namespace WHERE nspname = 'jobq') + (SELECT count(*) FROM pg_roles WHERE rolname LIKE 'jobq%')}),
	'0', 'nothing stays behind: no extension, no schema, no role');

# An extension that was made with the preload, on a server that has lost it.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'");
$node->restart;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q');
	SELECT jobq.enqueue('a', queue => 'q');
	CREATE FUNCTION public.attempt(command text, OUT state text, OUT message text, OUT hint text) LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE command;
		state := 'none';
	EXCEPTION WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
	END $$;
});
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\njobq.max_lanes = 10\njobq.max_groups = 10");
$node->restart;

my $calls = q{
	SELECT p.proname, format('%s %s(%s)', CASE prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT * FROM' END, p.oid::regproc,
		(SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n) FROM unnest(proargtypes) WITH ORDINALITY AS a(t, n))) AS command
	FROM pg_proc p
	WHERE pronamespace = 'jobq'::regnamespace AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'c')
	  AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype) AND proname NOT IN ('health', 'warn_if_nothing_runs')
};
my $number = $node->safe_psql('postgres', "SELECT count(*) FROM ($calls) c");
cmp_ok($number, '>=', 20, 'there are functions to try');
is($node->safe_psql('postgres', qq{SELECT c.proname, a.* FROM ($calls) c, public.attempt(c.command) a
	WHERE state <> '55000' OR hint !~ 'shared_preload_libraries = ''jobq''.*postgresql\\.conf.*restart'}),
	'', "each of the $number functions stops with 55000 and the hint");

is($node->safe_psql('postgres', "SELECT check_name, ok, message ~ 'shared_preload_libraries' FROM jobq.health()"), 'preloaded|f|t', 'health() says so in a row');
($code, $out, $err) = $node->psql('postgres', 'SELECT jobq.warn_if_nothing_runs()');
like("$code $err", qr/^0 .*WARNING: .*shared_preload_libraries/s, 'warn_if_nothing_runs() warns of it');

($code, $out, $err) = $node->psql('postgres', "LOAD 'jobq'; SELECT 1");
is("$code $out $err", '0 1 ', 'LOAD is still silent');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$PostgreSQL::Test::Utils::tmp_check/without.dump", $node->connstr('postgres') ], 'pg_dump works');
is($node->safe_psql('postgres', 'DROP EXTENSION jobq; SELECT 1'), '1', 'DROP EXTENSION works');

$node->stop;
done_testing();
