
# The life of the extension itself: who may be there before it, two databases at once, dropped and made again under cached plans, another
# owner (promises 10 and 11, cases 116, 139, 142).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'");
$node->start;

# A schema of that name that a role without rights has made beforehand must not give it anything.
sub fresh
{
	my ($name, @before) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql($name, join(';', @before)) if @before;
	return;
}

sub create_fails
{
	my ($name, $state, $pattern, $what) = @_;
	my ($code, $out, $err) = $node->psql($name, "\\set VERBOSITY verbose\nCREATE EXTENSION jobq");
	like($err, qr/ERROR:\s+$state: .*$pattern/s, $what);
	is($node->safe_psql($name, "SELECT count(*) FROM pg_extension WHERE extname = 'jobq'"), '0', '... and nothing is made');
	return;
}

$node->safe_psql('postgres', 'CREATE ROLE low LOGIN');
fresh('schema_of_low', 'CREATE SCHEMA jobq AUTHORIZATION low');
create_fails('schema_of_low', '42501', 'HINT', 'a schema of somebody else is refused');
fresh('planted', 'CREATE SCHEMA jobq', 'GRANT ALL ON SCHEMA jobq TO low', 'SET ROLE low',
	q{CREATE FUNCTION jobq.complete(a int, b int) RETURNS int LANGUAGE sql AS 'SELECT 1'});
create_fails('planted', '\w{5}', 'HINT', 'a schema with something in it is refused');
fresh('granted', 'CREATE SCHEMA jobq', 'GRANT ALL ON SCHEMA jobq TO low, PUBLIC');
my ($code) = $node->psql('granted', 'CREATE EXTENSION jobq');
is($node->safe_psql('granted', q{SELECT has_schema_privilege('low', 'jobq', 'CREATE') AND EXISTS (SELECT FROM pg_extension WHERE extname = 'jobq')}),
	'f', 'a right to create in the schema, given before, does not survive');
fresh('own', 'CREATE SCHEMA jobq');
$node->safe_psql('own', 'CREATE EXTENSION jobq');
is($node->safe_psql('own', q{SELECT has_schema_privilege('low', 'jobq', 'USAGE') OR has_schema_privilege('low', 'jobq', 'CREATE')}),
	'f', 'an empty schema of one\'s own is taken, and PUBLIC has no right in it');
for my $kind ('TABLE public.job (job_id bigint)', 'FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT NULL::timestamptz$$')
{
	my ($name) = lc($kind) =~ /^(\w+)/;
	fresh("trap_$name", "CREATE $kind", "GRANT ALL ON SCHEMA public TO low");
	is($node->safe_psql("trap_$name", q{SET search_path = public, pg_catalog; CREATE EXTENSION jobq; SELECT jobq.create_queue('q'); SELECT jobq.enqueue('a', queue => 'q') > 0;
		SELECT task FROM jobq.claim('q')}), "t\nt\na", "a $name of a common name in the caller's path does not matter");
}

# The roles: a group role that is there is used, one that could log in or is a superuser is refused.
is($node->safe_psql('postgres', q{SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles WHERE rolname LIKE 'jobq%' AND NOT rolcanlogin AND NOT rolsuper}),
	'jobq_admin jobq_producer jobq_reader jobq_scheduler jobq_worker', 'the roles are made, without login');
fresh('roles');
for my $option (qw(LOGIN SUPERUSER))
{
	for my $role (qw(jobq_worker jobq_admin))
	{
		$node->safe_psql('postgres', "ALTER ROLE $role $option");
		create_fails('roles', '\w{5}', $role, "$role with $option is refused by name");
		$node->safe_psql('postgres', "ALTER ROLE $role NO$option");
	}
}
$node->safe_psql('roles', 'CREATE EXTENSION jobq');
is($node->safe_psql('roles', "SELECT has_function_privilege('jobq_worker', p.oid, 'EXECUTE') FROM pg_proc p WHERE proname = 'claim' AND pronamespace = 'jobq'::regnamespace"),
	't', 'roles that were there get their rights in the new database too');

# Two databases at once, with no role yet: the later waits for the roles of the earlier, and forgives its commit or does them itself.
$node->safe_psql('postgres', "DROP DATABASE $_") for qw(schema_of_low planted granted own trap_table trap_function roles);
for my $end (qw(COMMIT ROLLBACK))
{
	$node->safe_psql('postgres', 'DROP ROLE IF EXISTS jobq_admin, jobq_producer, jobq_reader, jobq_scheduler, jobq_worker');
	fresh($_) for qw(one two);
	my $one = $node->background_psql('one');
	my $two = $node->background_psql('two', on_error_stop => 0);
	$one->query_safe('BEGIN');
	$one->query_safe('CREATE EXTENSION jobq');
	$two->query_until(qr/started/, "\\echo started\nCREATE EXTENSION jobq;\n\\echo created\n");
	$node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = 'two' AND wait_event_type = 'Lock')});
	$one->query_safe($end);
	$two->query_until(qr/created/, '');
	is($node->safe_psql('two', "SELECT jobq.enqueue('a') > 0"), 't', "two databases at once, $end of the first");
	$_->quit for $one, $two;
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'jobq%'"), '5', 'all the roles are there');
	$node->safe_psql('postgres', "DROP DATABASE $_") for qw(one two);
}

# Dropped and made again, in the same session and beside one, whose saved plans point at tables that are gone.
fresh('again');
my $round = q{SELECT jobq.create_queue('q'); SELECT count(jobq.set_group('q', 'g', 2)); SELECT jobq.enqueue('a', queue => 'q') > 0;
	SELECT count(*) FILTER (WHERE jobq.complete(job_id, attempt)) FROM jobq.claim('q'); SELECT promoted FROM jobq.sweep();};
my $a = $node->background_psql('again', on_error_stop => 0);
my $b = $node->background_psql('again', on_error_stop => 0);
$a->query_safe('CREATE EXTENSION jobq');
for my $try (1 .. 3)
{
	is($a->query($round), "t\n1\nt\n1\n0", "round $try: the session that drops and creates");
	is($b->query("SELECT jobq.drop_queue('q', force => true);\n$round"), "\nt\n1\nt\n1\n0", "round $try: the session beside it");
	$a->query_safe('BEGIN; DROP EXTENSION jobq; ROLLBACK');
	is($b->query("SELECT jobq.drop_queue('q', force => true);\n$round"), "\nt\n1\nt\n1\n0", "round $try: after a DROP that was rolled back");
	my $old = $a->query_safe("SELECT max(job_id) FROM jobq.job");
	$a->query_safe('DROP EXTENSION jobq');
	$b->query('SELECT jobq.enqueue(\'a\')');
	like($b->{stderr}, qr/(schema "jobq"|function jobq\.enqueue\S*) does not exist/, "round $try: without it a clear error");
	$b->{stderr} = '';
	$a->query_safe('CREATE EXTENSION jobq');
	is($a->query_safe('SELECT count(*) FROM jobq.job'), '0', "round $try: the new one is empty");
}
is($a->query("BEGIN; DROP EXTENSION jobq; CREATE EXTENSION jobq; $round COMMIT"), "t\n1\nt\n1\n0", 'both in one transaction');
$_->quit for $a, $b;

# Dropped by its schema or with its owner's things.
is($node->safe_psql('again', "SET client_min_messages = warning; DROP SCHEMA jobq CASCADE; CREATE EXTENSION jobq; SELECT jobq.enqueue('a') > 0"),
	't', 'DROP SCHEMA CASCADE takes the extension, and it can be made again');

# Another owner, also with a name that needs quotes; members of the roles keep working, whoever owns the tables.
fresh('owned', 'CREATE ROLE "Weird ""Role" SUPERUSER', 'CREATE ROLE heir', 'CREATE ROLE app LOGIN');
$node->safe_psql('owned', q{SET ROLE "Weird ""Role"; CREATE EXTENSION jobq; RESET ROLE; GRANT jobq_producer, jobq_worker TO app});
my $work = q{SELECT jobq.enqueue('a') > 0; SELECT count(*) FILTER (WHERE jobq.complete(job_id, attempt)) FROM jobq.claim(); SELECT promoted FROM jobq.sweep();};
is($node->safe_psql('owned', $work, extra_params => [ '-U', 'app' ]), "t\n1\n0", 'made by another superuser: its users work');
$node->safe_psql('owned', q{ALTER ROLE "Weird ""Role" NOSUPERUSER});
is($node->safe_psql('owned', $work, extra_params => [ '-U', 'app' ]), "t\n1\n0", 'its owner is no superuser any more: its users work');
my $app = $node->background_psql('owned', on_error_stop => 0, extra_params => [ '-U', 'app' ]);
is($app->query($work), "t\n1\n0", 'a session with saved plans');
$node->safe_psql('owned', q{REASSIGN OWNED BY "Weird ""Role" TO heir; DROP OWNED BY "Weird ""Role"; DROP ROLE "Weird ""Role"});
is($app->query($work), "t\n1\n0", 'REASSIGN OWNED under it: it works on');
is($node->safe_psql('owned', $work, extra_params => [ '-U', 'app' ]), "t\n1\n0", 'and so does a new one');
is($node->safe_psql('owned', "SELECT r.rolname FROM pg_class c JOIN pg_roles r ON r.oid = relowner WHERE c.oid = 'jobq.job'::regclass"), 'heir', 'with the new owner');
$node->safe_psql('owned', q{ALTER ROLE heir RENAME TO "Heir's"});
is($node->safe_psql('owned', $work, extra_params => [ '-U', 'app' ]), "t\n1\n0", 'and with a new name of the owner');
$app->quit;

$node->stop;
done_testing();
