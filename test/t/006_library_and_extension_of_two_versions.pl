
# An extension older or newer than the library (a package upgraded without ALTER EXTENSION, a rollback of a package): every function
# stops with 55000 and says which way to go, also in a session that worked before; and DROP EXTENSION still works (case 114).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
my $folder = $node->config_data('--sharedir') . '/extension';
plan skip_all => "$folder is not writable: install jobq into a private copy of the server" unless -w $folder;
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q');
	CREATE FUNCTION public.attempt(command text, OUT state text, OUT message text, OUT hint text) LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE command;
		state := 'none';
	EXCEPTION WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
	END $$;
});
my $version = $node->safe_psql('postgres', "SELECT extversion FROM pg_extension WHERE extname = 'jobq'");
is($node->safe_psql('postgres', "SELECT default_version FROM pg_available_extensions WHERE name = 'jobq'"), $version, 'the version is the control file\'s');

my $script = "$folder/jobq--$version--99.0.sql";
append_to_file($script, "SELECT 1;\n");
END { unlink $script if defined $script }

my $calls = q{
	SELECT p.proname, format('SELECT * FROM %s(%s)', p.oid::regproc,
		(SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n) FROM unnest(proargtypes) WITH ORDINALITY AS a(t, n))) AS command
	FROM pg_proc p
	WHERE pronamespace = 'jobq'::regnamespace AND prokind <> 'p' AND proname <> 'health' AND has_function_privilege('jobq_admin', oid, 'EXECUTE')
	  AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
};
# What is no function to be called in a query: the procedures, and health(), which answers all the same.
sub rest
{
	my ($which, $hint) = @_;
	for my $call ("wait('q', '1 s')", "wait_any('{q}', '1 s')")
	{
		my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nCALL jobq.$call");
		like($err, qr/ERROR:  55000: .*HINT:.*$hint/s, "$which: $call too");
	}
	is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.health() WHERE check_name = 'version' AND NOT ok AND message ~ '\Q$version\E'"), '1',
		"$which: health() says so");
	return;
}

my $session = $node->background_psql('postgres', on_error_stop => 0);
is($session->query("SELECT jobq.enqueue('a', queue => 'q') > 0"), 't', 'a session works');

# newer than the library
$node->safe_psql('postgres', "ALTER EXTENSION jobq UPDATE TO '99.0'");
is($node->safe_psql('postgres', qq{SELECT c.proname, a.* FROM ($calls) c, public.attempt(c.command) a
	WHERE state <> '55000' OR message !~ '99\\.0' OR message !~ '\Q$version\E' OR coalesce(hint, '') = ''}),
	'', 'newer: every function stops with 55000, both versions and a hint');
rest('newer', '(restart|install)');
my $newer = $node->safe_psql('postgres', q{SELECT message || ' / ' || hint FROM public.attempt($$SELECT jobq.enqueue('a', queue => 'q')$$)});
like($newer, qr/restart|install/i, 'and the way is the library');
is($session->query("SELECT state FROM public.attempt(\$\$SELECT jobq.enqueue('a', queue => 'q')\$\$)"), '55000', 'also in the session from before');

# older than the library
$node->safe_psql('postgres', "UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = 'jobq'");
is($node->safe_psql('postgres', qq{SELECT c.proname, a.* FROM ($calls) c, public.attempt(c.command) a
	WHERE state <> '55000' OR message !~ '0\\.0\\.1' OR message !~ '\Q$version\E' OR hint !~ 'ALTER EXTENSION jobq UPDATE'}),
	'', 'older: every function stops with 55000, both versions and ALTER EXTENSION jobq UPDATE');
rest('older', 'ALTER EXTENSION jobq UPDATE');

# and back
$node->safe_psql('postgres', "UPDATE pg_extension SET extversion = '$version' WHERE extname = 'jobq'");
is($node->safe_psql('postgres', "SELECT ok FROM jobq.health() WHERE check_name = 'version'"), 't', 'with its own version health() is content');
is($node->safe_psql('postgres', "SELECT jobq.enqueue('b', queue => 'q') > 0"), 't', 'with its own version it works again');
is($node->safe_psql('postgres', "SELECT string_agg(task, ' ' ORDER BY job_id) FROM jobq.jobs"), 'a b', 'and nothing was lost or made meanwhile');
$session->quit;

$node->safe_psql('postgres', "UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = 'jobq'");
is($node->safe_psql('postgres', 'DROP EXTENSION jobq; SELECT 1'), '1', 'an unfit extension can be dropped');
$node->stop;
done_testing();
