
# Through a transaction pooler, where each statement may meet another backend (promise 9, case 28): PgBouncer with pool_mode = transaction, fewer
# backends than workers, one backend for each statement of a worker's life.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../wake";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Wake;

my ($bouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
plan skip_all => 'pgbouncer is not installed' unless $bouncer;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q');
	CREATE TABLE seen (pid int, task text, job_id bigint, attempt int, done boolean);
	SELECT count(*) FROM jobq.enqueue_batch('a', (SELECT jsonb_agg(i) FROM generate_series(1, 300) i), queue => 'q');
	CREATE FUNCTION public.worker_pid() RETURNS int LANGUAGE sql AS 'SELECT pg_backend_pid()';
});

my $folder = PostgreSQL::Test::Utils::tempdir_short();
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $user = $node->safe_psql('postgres', 'SELECT current_user');
append_to_file("$folder/users.txt", qq("$user" ""\n));
append_to_file("$folder/pgbouncer.ini", "[databases]\n* = host=" . $node->host . ' port=' . $node->port . "\n[pgbouncer]\n"
	. "listen_addr =\nlisten_port = $port\nunix_socket_dir = $folder\nauth_type = any\nauth_file = $folder/users.txt\npool_mode = transaction\n"
	. "default_pool_size = 3\nserver_round_robin = 1\nlogfile = $folder/log\npidfile = $folder/pid\nignore_startup_parameters = extra_float_digits\n");
# auth_type = any takes the server's user from the connection string of the database
my $ini = slurp_file("$folder/pgbouncer.ini");
$ini =~ s/^\* = (.*)$/* = $1 user=$user/m;
open my $file, '>', "$folder/pgbouncer.ini" or die;
print $file $ini;
close $file;
my ($in, $out, $err) = ('', '', '');
my $pooler = IPC::Run::start([ $bouncer, '-q', "$folder/pgbouncer.ini" ], '<', \$in, '>', \$out, '2>', \$err);
END { $pooler->kill_kill if $pooler }
my $through = "host=$folder port=$port dbname=postgres user=$user";
my $up = 0;
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	$up = system_log('psql', '-XAtqc', 'SELECT 1', $through) == 0 and last;
	select(undef, undef, undef, 0.1);
}
ok($up, 'the pooler is up');
# All three connections first: a quick machine is done with the work before there is a second one.
my $meeting = "$folder/meeting.sql";
append_to_file($meeting, q{DO $$ BEGIN WHILE (SELECT count(*) < 3 FROM pg_stat_activity WHERE query LIKE 'DO %')
	LOOP PERFORM pg_sleep(0.01), pg_stat_clear_snapshot(); END LOOP; END $$;});
command_ok([ 'pgbench', '-n', '-c', '3', '-t', '1', '-f', $meeting, '-h', $folder, '-p', $port, '-U', $user, 'postgres' ], 'three backends at once');

# Six workers: each claims, renews and completes in three statements; \gset keeps the token, no session does.
my $script = "$folder/worker.sql";
append_to_file($script, join("\n", map { s/^\t+//r } split /\n/, q{
	SELECT job_id, attempt, worker_pid() AS pid FROM jobq.claim('q') \gset
	SELECT (jobq.renew(:job_id, :attempt) IS NOT NULL)::int AS renewed \gset
	INSERT INTO seen VALUES (pg_backend_pid(), 'renewed', :job_id, :attempt, :renewed = 1), (:pid, 'claimed', :job_id, :attempt, true);
	INSERT INTO seen SELECT pg_backend_pid(), 'completed', :job_id, :attempt, jobq.complete(:job_id, :attempt);
}) . "\n");
command_ok([ 'pgbench', '-n', '-c', '6', '-t', '50', '-f', $script, '-h', $folder, '-p', $port, '-U', $user, 'postgres' ], 'six workers behind three backends');
is($node->safe_psql('postgres', "SELECT count(*), bool_and(done), count(DISTINCT job_id) FROM seen WHERE task = 'completed'"), '300|t|300', 'each job was completed once');
is($node->safe_psql('postgres', "SELECT count(*), bool_and(done) FROM seen WHERE task = 'renewed'"), '300|t', 'and renewed');
is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.history WHERE state = 'completed' AND attempt = 1"), '300', 'at its first attempt');
is($node->safe_psql('postgres', "SELECT count(*) > 0 FROM seen c JOIN seen d USING (job_id) WHERE c.task = 'claimed' AND d.task = 'completed' AND c.pid <> d.pid"),
	't', 'many by another backend than the one that had claimed them');

# A life by statements that each meet another backend, and what CALL jobq.wait does here.
{
	local $Wake::host = $folder;
	local $Wake::port = $port;
	local $ENV{PGUSER} = $user;
	run_checks($node, 'pooled.py', $node->connstr('postgres') . " user=$user");
}

$pooler->kill_kill;
undef $pooler;
$node->stop;
done_testing();
