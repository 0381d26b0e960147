
# Sessions that end in the midst of a claim, a row that somebody puts into jobq.ready by hand, and many clients that make jobs appear late or
# again (test/lanes): claims miss none, and the manager's re-read finds nothing but the one by hand (promise 1).
#
# By hand: JOBQ_SECONDS=60 JOBQ_SEED=7, or test/lanes.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{JOBQ_SECONDS} || 8;
my $seed = $ENV{JOBQ_SEED} || 1;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => [ '--encoding=UTF8', '--locale=C.UTF-8' ]);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\njobq.reread_lanes = off\njobq.sweep_interval = '100ms'\ndeadlock_timeout = '50ms'");
$node->start;
$node->safe_psql('postgres', "CREATE EXTENSION jobq; SELECT jobq.create_queue('terminated'), jobq.create_queue('by_hand')");

# terminated in a transaction, and while it holds its jobs in the midst of a statement
for my $statement ('SELECT pg_sleep(600)', "SELECT pg_sleep(600) FROM jobq.claim('terminated', 2)")
{
	$node->safe_psql('postgres', "SELECT jobq.enqueue('t', to_jsonb(n), 'terminated') FROM generate_series(1, 6) n");
	my ($out, $err);
	my @commands = map { ('-c', $_) } ("SET jobq.claim_in_transaction = allow", "SET application_name = victim", 'BEGIN', "SELECT count(*) FROM jobq.claim('terminated', 2)",
		'SAVEPOINT s', "SELECT count(*) FROM jobq.claim('terminated')", $statement);
	my $victim = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), @commands ], '<', \undef, '>', \$out, '2>', \$err);
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'victim' AND wait_event = 'PgSleep'"), 'a session holds jobs');
	my $free = $statement =~ /claim/ ? 1 : 3;
	is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('terminated', 10)"), $free, 'others have claimed what is free');
	is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('terminated', 10)"), '0', '... and there is no more') for 1 .. 2;
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'victim'");
	$victim->finish;
	is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('terminated', 10)"), 6 - $free, 'what the session held is claimed when it is gone');
	is($node->safe_psql('postgres', "SELECT sum(transactions) FROM jobq.lanes"), '0', '... and it has left its lanes');
}

# by hand, below the cursor
$node->safe_psql('postgres', "SELECT jobq.enqueue('t', queue => 'by_hand') FROM generate_series(1, 3)");
$node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('by_hand', 3)") for 1 .. 3;
$node->safe_psql('postgres', q{
	WITH j AS (INSERT INTO jobq.job (job_id, queue_id, enqueued_at, priority, task, payload)
		SELECT nextval('jobq.job_number'), queue_id, clock_timestamp(), 5, 'by hand', n::text::jsonb FROM jobq.queue, generate_series(1, 2) n WHERE name = 'by_hand' RETURNING *)
	INSERT INTO jobq.ready SELECT queue_id, payload::int, job_id, 0, 0, 0, priority FROM j});
is($node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('by_hand')"), '0', 'claims do not look for rows by hand');
my $before = -s $node->logfile;
$node->append_conf('postgresql.conf', 'jobq.reread_lanes = on');
$node->reload;
ok($node->poll_query_until('postgres', "SELECT sum(found_too_high) = 1 FROM jobq.lanes WHERE queue = 'by_hand'"), 'the manager finds them');
is($node->safe_psql('postgres', "SELECT payload FROM jobq.claim('by_hand', 5)"), "1\n2", '... and they are claimed');
# another one, which a manager that comes anew looks for at once
$node->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('by_hand')") for 1 .. 2;
$node->safe_psql('postgres', q{
	WITH j AS (INSERT INTO jobq.job (job_id, queue_id, enqueued_at, priority, task, payload)
		SELECT nextval('jobq.job_number'), queue_id, clock_timestamp(), 5, 'by hand', '3' FROM jobq.queue WHERE name = 'by_hand' RETURNING *)
	INSERT INTO jobq.ready SELECT queue_id, 3, job_id, 0, 0, 0, priority FROM j});
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'jobq manager'");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM jobq.claim('by_hand')"), '... another one too');
is($node->safe_psql('postgres', 'SELECT sum(found_too_high) FROM jobq.lanes'), '2', 'each was counted once');
my @said = substr(slurp_file($node->logfile), $before) =~ /(claims of queue "[^"]+", priority 5, would have missed a job)/g;
is(scalar @said, 2, '... and said once');

# Many clients.
$node->append_conf('postgresql.conf', 'jobq.reread_lanes = off');
$node->reload;
$node->safe_psql('postgres', 'DROP EXTENSION jobq');
my ($said, $trouble);
{
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres', PGCLIENTENCODING => 'UTF8', PYTHONUNBUFFERED => 1);
	IPC::Run::run([ 'python3', '-B', "$FindBin::RealBin/../lanes", '--here', '--seconds', $seconds, '--seed', $seed ], '>', \$said, '2>', \$trouble);
}
for my $line (split /\n/, "$said$trouble")
{
	if ($line =~ /^(not )?ok - (.*)/) { ok(!$1, $2) }
	else { ($line =~ /^!/ || $said !~ /attempts/) ? diag($line) : note($line) }
}
like($said, qr/attempts is one client/, 'test/lanes came to its end');
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'no crash');
$node->stop;
done_testing();
