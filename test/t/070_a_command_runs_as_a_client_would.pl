
# A command is run as a client of its role would run it: each kind of statement either works or fails with a stored error, and the end of the
# job is written down whatever the command did (cases 19, 59, 88, 154, 178).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	CREATE ROLE ann LOGIN IN ROLE jobq_scheduler;
	GRANT CREATE ON SCHEMA public TO ann;
	CREATE SCHEMA elsewhere;
	GRANT USAGE ON SCHEMA elsewhere TO ann;
	SET ROLE ann;
	CREATE TABLE t (i int UNIQUE DEFERRABLE INITIALLY DEFERRED);
	CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (10); COMMIT; INSERT INTO t VALUES (11); ROLLBACK; INSERT INTO t VALUES (12); END $$;
	RESET ROLE;
	CREATE PROCEDURE elsewhere.there() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.t VALUES (13); COMMIT; END $$;
});

# How the job of the command ends: its state, its result or error.
sub ends
{
	my ($command) = @_;
	my $id = $node->safe_psql('postgres', "SET ROLE ann; SELECT jobq.enqueue_sql(\$q\$$command\$q\$)");
	$node->poll_query_until('postgres', "SELECT ended_at IS NOT NULL FROM jobq.sql_jobs WHERE job_id = $id") or die "job $id does not end";
	return $node->safe_psql('postgres', "SELECT state, coalesce(result::text, last_error) FROM jobq.sql_jobs WHERE job_id = $id");
}
sub rows { return $node->safe_psql('postgres', 'SELECT string_agg(i::text, \',\' ORDER BY i) FROM t') }
sub becomes
{
	my ($command, $end, $rows, $name) = @_;
	$node->safe_psql('postgres', 'TRUNCATE t');
	like(ends($command), $end, $name);
	is(rows(), $rows, "$name: what is left of it") if defined $rows;
}
my $done = qr/^completed\|/;

becomes('INSERT INTO t VALUES (1), (2)', qr/^completed\|\{"rows": 2, "command": "INSERT"\}$/, '1,2', 'rows are counted');
becomes("SELECT 42 AS answer, 'x' AS name, NULL AS nothing, ARRAY[1, 2] AS list UNION ALL SELECT 1, 'y', NULL, NULL",
	qr/^completed\|\{"row": \{"list": \[1, 2\], "name": "x", "answer": 42, "nothing": null\}, "rows": 2, "command": "SELECT"\}$/, undef, 'the first row is kept');
becomes('INSERT INTO t VALUES (3) RETURNING i + 1 AS next', qr/"row": \{"next": 4\}, "rows": 1/, '3', 'RETURNING returns');
becomes('SHOW search_path', qr/"row": \{"search_path": .*"command": "SHOW"/, undef, 'SHOW shows');
becomes('SELECT pg_sleep(0)', qr/"row": \{"pg_sleep": ""\}/, undef, 'void is something');
becomes('SELECT', qr/^completed\|\{"row": \{\}, "rows": 1, "command": "SELECT"\}$/, undef, 'no column is no trouble');

becomes('VACUUM t', $done, '', 'VACUUM');
becomes('CREATE INDEX CONCURRENTLY made_beside ON t (i)', $done, '', 'CREATE INDEX CONCURRENTLY');
becomes('REINDEX INDEX CONCURRENTLY made_beside', $done, '', 'REINDEX CONCURRENTLY');
becomes('CALL commits()', $done, '10,12', 'a procedure that commits and rolls back');
becomes('DO $$ BEGIN INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (2); ROLLBACK; END $$', $done, '1', 'DO that commits and rolls back');
becomes('INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)', $done, '1,2', 'several statements');
becomes('INSERT INTO t VALUES (1); SELECT 1 / 0', qr/^dead\|22012: division by zero$/, '', 'several statements are one transaction');
becomes('BEGIN; INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (2); SELECT 1 / 0', qr/^dead\|22012/, '1', 'BEGIN and COMMIT say otherwise');
becomes('BEGIN; INSERT INTO t VALUES (1); SAVEPOINT s; INSERT INTO t VALUES (2); ROLLBACK TO s; COMMIT', $done, '1', 'savepoints');
becomes('BEGIN; INSERT INTO t VALUES (1); ROLLBACK AND CHAIN; INSERT INTO t VALUES (2); COMMIT', $done, '2', 'AND CHAIN');
becomes('CREATE TEMP TABLE mine AS SELECT 7 AS i; INSERT INTO t SELECT i FROM mine', $done, '7', 'temporary tables');
becomes("SET work_mem = '2MB'; VACUUM t", $done, '', 'SET before VACUUM');
becomes('SET search_path = elsewhere; RESET work_mem; CALL there()', $done, '13', 'SET before a procedure that commits');
becomes("SET LOCAL work_mem = '3MB'; SELECT current_setting('work_mem') AS w", qr/"w": "3MB"/, undef, 'SET LOCAL is about the transaction');
becomes('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT current_setting(\'transaction_isolation\') AS l', qr/"l": "repeatable read"/, undef, 'SET TRANSACTION too');
becomes('INSERT INTO t VALUES (1); VACUUM t', qr/^dead\|25001: VACUUM cannot/, '', 'what must be alone says so');

becomes('BEGIN; INSERT INTO t VALUES (1)', qr/^dead\|25001: the command ended inside a transaction block, which was rolled back\nHINT:  End it with COMMIT\.$/, '', 'a block left open is a failure');
becomes('INSERT INTO t VALUES (1); BEGIN', qr/^dead\|25001/, '', 'so is one that begins at the end');
becomes('BEGIN; SELECT 1 / 0; COMMIT', qr/^dead\|22012/, undef, 'and one that was aborted');
becomes('COPY t TO STDOUT', qr/^dead\|0A000: cannot COPY TO STDOUT in a SQL job\nHINT:  A SQL job has no client/, undef, 'there is no client to copy to');
becomes('COPY t FROM STDIN', qr/^dead\|0A000: cannot COPY FROM STDIN/, undef, 'nor from');
becomes('LISTEN c', qr/^dead\|0A000: cannot execute LISTEN within a background process$/, undef, 'nor to tell');
becomes('INSERT INTO t VALUES (1), (1)', qr/^dead\|23505: .*\nDETAIL:  Key \(i\)=\(1\) already exists\.$/, '', 'an error at the commit');
becomes("DO \$\$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'm', DETAIL = 'd', HINT = 'h'; END \$\$", qr/^dead\|40001: m\nDETAIL:  d\nHINT:  h\nCONTEXT:  PL\/pgSQL function inline_code_block line 1 at RAISE$/, undef, 'an error is kept whole');
becomes('DO $$ BEGIN EXECUTE \'selec 1\'; END $$', qr/^dead\|42601: syntax error/, undef, 'a syntax error at run time');
becomes('SELECT * FROM missing', qr/^dead\|42P01: /, undef, 'a name that is not there');
becomes("SELECT repeat('x', 1000000000) || repeat('x', 100000000)", qr/^dead\|XX000: invalid memory alloc request size/, undef, 'a value that is too long, and the server goes on');
becomes("SELECT length(repeat(repeat('ab', 1000), 100000)) AS l", qr/"l": 200000000/, undef, 'the same process, the next job');

# What is too long for the record is cut at a character, and what JSONB does not take is left out.
becomes("SELECT repeat('ä', 5000000) AS long, 1 AS short", qr/^completed\|\{"row": \{"long": "(?:ä)+", "short": 1\}, "rows": 1, "is_cut": true, "command": "SELECT"\}$/, undef, 'a long text');
becomes("SELECT decode(repeat('00', 1000000), 'hex') AS bytes, 1 AS short", qr/^completed\|\{"row": \{"bytes": null, "short": 1\}, .*"is_cut": true/, undef, 'other long values');
becomes("SELECT '\"\\u0000\"'::json AS j", qr/^completed\|\{"rows": 1, "is_cut": true, "command": "SELECT"\}$/, undef, 'JSON that is not JSONB');
becomes("SELECT 'NaN'::numeric AS n, 'infinity'::float8 AS f, ROW(1, 'x') AS r, '<a/>'::xml AS x, now() IS NULL AS b", qr/"n": "NaN", "r": \{"f1": 1, "f2": "x"\}/, undef, 'values of all kinds');
becomes('SELECT ' . join(', ', map { "$_ AS c$_" } 1 .. 1600), qr/^completed\|\{"row": \{.*"c1600": 1600/, undef, 'as many columns as there can be');
becomes("DO \$\$ BEGIN RAISE EXCEPTION '%', repeat('ä', 100000); END \$\$", qr/^dead\|P0001: (?:ä)+$/, undef, 'a long error');
is($node->safe_psql('postgres', q{SELECT max(pg_column_size(result)) < 100000, max(octet_length(last_error)) <= 65536 FROM jobq.sql_jobs}), 't|t', 'none is longer than it may be');

# What it tells others they hear at its commit, and not if there is none (case 88).
my $listener = $node->background_psql('postgres');
$listener->query_safe('LISTEN told');
like(ends("NOTIFY told, 'rolled back'; SELECT 1 / 0"), qr/^dead/, 'it fails');
like(ends("NOTIFY told, 'committed'"), $done, 'it ends well');
like($listener->query('SELECT 1'), qr/Asynchronous notification "told" with payload "committed"/, 'a listener hears of the one that committed');
unlike($listener->{stdout}, qr/rolled back/, 'and of no other');
$listener->quit;

is($node->safe_psql('postgres', q{SELECT count(*) FROM jobq.failures WHERE kind <> 'error'}), '0', 'no job had another end than its own');
$node->stop;
done_testing();
