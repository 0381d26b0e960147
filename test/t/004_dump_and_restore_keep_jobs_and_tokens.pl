
# Dump and restore, into a fresh database and into a fresh cluster: every row of every table, the sequences, the grants; a lease goes on
# being its worker's, a late token stays late, attempts go on from where they were (promises 3 and 10, cases 23, 56, 127, 129, 131).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $dir = $PostgreSQL::Test::Utils::tmp_check;
my $old = PostgreSQL::Test::Cluster->new('old');
$old->init;
$old->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'");
$old->start;
$old->safe_psql('postgres', 'CREATE DATABASE work');
$old->safe_psql('work', q{
	CREATE EXTENSION jobq;
	CREATE ROLE app LOGIN;
	CREATE ROLE narrow LOGIN;
	CREATE ROLE nobody LOGIN;
	GRANT jobq_producer, jobq_worker TO app;
	GRANT USAGE ON SCHEMA jobq TO narrow;
	GRANT SELECT ON jobq.queues TO narrow;
	SELECT jobq.create_queue('q', lease => '1 h', retry_base => '0');
	SELECT jobq.create_queue('paused', max_attempts => 3);
	SELECT jobq.pause_queue('paused');
	SELECT jobq.set_group('q', 'g', 10);
	SELECT jobq.enqueue('late token', queue => 'q');
	SELECT jobq.fail(job_id, attempt, 'no') FROM jobq.claim('q');
	SELECT jobq.enqueue(t, jsonb_build_object('t', t), queue => 'q', job_key => 'key of ' || t, headers => '{"h": 1}')
	FROM unnest('{held,completed,cancelled,dead,ready}'::text[]) t;
	SELECT jobq.enqueue('default queue');
	SELECT jobq.enqueue('delayed', queue => 'q', delay => '1 day', group_key => 'g');
	SELECT jobq.enqueue('paused', queue => 'paused', priority => 3);
	CREATE TABLE held AS SELECT * FROM jobq.claim('q', 5);
	SELECT jobq.complete(job_id, attempt, '{"sum": 1}') FROM held WHERE task = 'completed';
	SELECT jobq.cancel(job_id, 'not wanted') FROM held WHERE task = 'cancelled';
	SELECT jobq.fail(job_id, attempt, 'broken', retry => false) FROM held WHERE task = 'dead';
});
is($old->safe_psql('work', q{SELECT string_agg(DISTINCT state, ' ' ORDER BY state) FROM (SELECT state FROM jobq.jobs UNION ALL SELECT state FROM jobq.history) s}),
	'cancelled completed dead delayed ready running', 'there is a job in every state');

# The right to one function, given to a role by hand, as an administrator would (case 131).
my $complete = $old->safe_psql('work', q{SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'jobq'::regnamespace AND proname = 'enqueue'});
$old->safe_psql('work', "GRANT EXECUTE ON FUNCTION $complete TO narrow");

my $before = digest($old, 'work');
like($before, qr/^failure\|3\|.*^group_weight\|1\|/ms, 'the digest sees rows');
$old->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/work.dump", $old->connstr('work') ], 'pg_dump');

# The same cluster, a new database, in parallel; and schema only, and one schema only.
$old->safe_psql('postgres', 'CREATE DATABASE again');
restored($old, 'again', "$dir/work.dump", '-j2');
is(digest($old, 'again'), $before, 'same cluster: every row and sequence is there');
goes_on($old, 'again');
$old->safe_psql('postgres', 'CREATE DATABASE empty');
restored($old, 'empty', "$dir/work.dump", '--schema-only');
is($old->safe_psql('empty', "SELECT count(*) FROM jobq.jobs"), '0', 'schema only: no jobs');
is($old->safe_psql('empty', "SELECT jobq.enqueue('a') > 0"), 't', 'and a working queue');

# Another cluster, with the roles, as pg_dumpall makes them.
my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
$new->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'");
$new->start;
$old->command_ok([ 'pg_dumpall', '-g', '-f', "$dir/roles.sql", '-d', $old->connstr('postgres') ], 'pg_dumpall of the roles');
# the superuser who made the cluster is there already
my $roles = slurp_file("$dir/roles.sql");
my $superuser = $new->safe_psql('postgres', 'SELECT quote_ident(current_user)');
$roles =~ s/^CREATE ROLE \Q$superuser\E;\n//m;
$new->safe_psql('postgres', $roles);
$new->safe_psql('postgres', 'CREATE DATABASE work');
restored($new, 'work', "$dir/work.dump");
is(digest($new, 'work'), $before, 'new cluster: every row and sequence is there');
goes_on($new, 'work');

# And back again: what was restored can be dumped and restored.
$new->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/second.dump", $new->connstr('work') ], 'pg_dump of the restored database');
$new->safe_psql('postgres', 'CREATE DATABASE third');
restored($new, 'third', "$dir/second.dump");
is(digest($new, 'third'), digest($new, 'work'), 'a second round changes nothing');

# Roles that are there from before are not in the way, and a cluster without them gets them from CREATE EXTENSION.
my $bare = PostgreSQL::Test::Cluster->new('bare');
$bare->init;
$bare->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'");
$bare->start;
$bare->safe_psql('postgres', 'CREATE DATABASE work');
$bare->command_ok([ 'pg_restore', '--exit-on-error', '--no-privileges', '-d', $bare->connstr('work'), "$dir/work.dump" ], 'a cluster without the roles');
is(digest($bare, 'work'), $before, 'every row and sequence is there');

$_->stop for $old, $new, $bare;
done_testing();

# One line for each table and sequence of the extension.
sub digest
{
	my ($node, $database) = @_;
	my $query = $node->safe_psql($database, q{
		SELECT string_agg(CASE relkind
			WHEN 'S' THEN format('SELECT %L, last_value, is_called::text FROM jobq.%I', relname, relname)
			ELSE format('SELECT %L, count(*), md5(string_agg(t::text, E''\n'' ORDER BY t::text)) FROM jobq.%I t', relname, relname) END,
			' UNION ALL ' ORDER BY relname)
		FROM pg_class WHERE relnamespace = 'jobq'::regnamespace AND relkind IN ('r', 'p', 'S')});
	return $node->safe_psql($database, "SET timezone = 'UTC'; $query");
}

sub restored
{
	my ($node, $database, $file, @options) = @_;
	my ($out, $err);
	my $ok = IPC::Run::run([ $node->installed_command('pg_restore'), '--exit-on-error', @options, '-d', $node->connstr($database), $file ],
		'>', \$out, '2>', \$err);
	ok($ok, "pg_restore @options into $database");
	is($err, '', 'without a word');
	return;
}

sub goes_on
{
	my ($node, $database) = @_;
	my $where = $node->name . " $database";
	is($node->safe_psql($database, "SELECT jobq.complete(job_id, 1) FROM held WHERE task = 'late token'"), 'f', "$where: a late token stays late");
	is($node->safe_psql($database, "SELECT task, attempt, tries FROM jobq.jobs WHERE task = 'late token'"), 'late token|2|2', "$where: attempts are kept");
	is($node->safe_psql($database, "SELECT jobq.renew(job_id, attempt) IS NOT NULL, jobq.complete(job_id, attempt) FROM held WHERE task = 'held'"),
		't|t', "$where: an open lease is its worker's");
	is($node->safe_psql($database, "SELECT jobq.retry(job_id) FROM held WHERE task = 'dead'"), 't', "$where: a dead job comes back");
	is($node->safe_psql($database, "SELECT string_agg(task || ' ' || attempt || ' ' || tries, ', ') FROM jobq.claim('q', 5)"),
		'ready 1 1, dead 2 1', "$where: and its attempts go on");
	is($node->safe_psql($database, "SELECT job_id > (SELECT max(job_id) FROM held), created FROM jobq.enqueue_unique('new', queue => 'q', job_key => 'key of ready')"),
		"t|f", "$where: a key is held by its job");
	is($node->safe_psql($database, "SELECT jobq.enqueue('new', queue => 'q') > (SELECT max(job_id) FROM jobq.job)"), 't', "$where: ids go on");
	is($node->safe_psql($database, "SELECT jobq.create_queue('another'); SELECT count(*) FROM jobq.queues"), "t\n4", "$where: a new queue can be made");
	is($node->safe_psql($database, "SELECT count(*) FROM jobq.claim('paused')"), '0', "$where: a paused queue is still paused");
	is($node->safe_psql($database, "SELECT jobq.enqueue('a', queue => 'q') > 0 FROM jobq.claim('q') WHERE task = 'new'",
			extra_params => [ '-U', 'app' ]), 't', "$where: a member of the roles works");
	is($node->safe_psql($database, "SELECT jobq.enqueue('a', queue => 'q') > 0, (SELECT count(*) > 0 FROM jobq.queues)", extra_params => [ '-U', 'narrow' ]),
		't|t', "$where: a right given by hand is there");
	my ($code, $out, $err) = $node->psql($database, "SELECT jobq.enqueue('a', queue => 'q')", extra_params => [ '-U', 'nobody' ]);
	like($err, qr/permission denied/, "$where: and nobody else's");
	return;
}
