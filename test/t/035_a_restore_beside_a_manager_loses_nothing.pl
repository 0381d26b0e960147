
# pg_restore into a server whose launcher runs: a manager comes as soon as the extension is there, and works while the tables fill, in
# whatever order. It touches no line whose job is not there yet; nothing is lost or doubled, attempts, keys, ids, rights go on (promises 1,
# 3 and 10, cases 127 to 132).
#
# JOBQ_ROUNDS: how often.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $rounds = $ENV{JOBQ_ROUNDS} || 4;
my $deadline = 60;
my $dir = $PostgreSQL::Test::Utils::tmp_check;
my $dump = "$dir/beside.dump";

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'jobq'
jobq.enabled = off
log_line_prefix = '%m [%p] %b '
});
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE work');
$node->safe_psql('work', q{
	SET client_min_messages = error;
	CREATE EXTENSION jobq;
	CREATE ROLE app LOGIN;
	CREATE ROLE narrow LOGIN;
	GRANT jobq_producer, jobq_worker TO app;
	GRANT USAGE ON SCHEMA jobq TO narrow;
	GRANT EXECUTE ON FUNCTION jobq.sweep TO narrow;
	SELECT jobq.create_queue('q', retry_base => '1 h', retry_cap => '1 h', max_crashes => 2);
	SELECT jobq.create_queue('lots');
	SELECT count(*) FROM jobq.enqueue_batch('failed', '[1, 2, 3, 4, 5]', queue => 'q');
	SELECT count(jobq.fail(job_id, attempt, 'first', retry_in => '1 ms')) FROM jobq.claim('q', 5);
	SELECT count(*) FROM jobq.enqueue_batch('pruned', (SELECT jsonb_agg(n) FROM generate_series(1, 50) n), queue => 'q');
	SELECT count(jobq.fail(job_id, attempt, 'broken', retry => false)) FROM jobq.claim('q', 50);
	UPDATE jobq.finished SET prune_at = clock_timestamp();
	SELECT count(jobq.enqueue('crashed', queue => 'q', job_key => 'crashed ' || n)) FROM generate_series(1, 50) n;
	SELECT count(*) FROM jobq.claim('q', 50);
	UPDATE jobq.lease SET expires_at = clock_timestamp(), crashes = job_id % 2;
	SELECT count(jobq.enqueue(t, queue => 'q', job_key => t || n)) FROM unnest('{held,completed,cancelled,dead}'::text[]) t, generate_series(1, 10) n;
	CREATE TABLE held AS SELECT * FROM jobq.claim('q', 40, lease => '1 day');
	SELECT count(jobq.complete(job_id, attempt, '{"sum": 1}')) FROM held WHERE task = 'completed';
	SELECT count(jobq.cancel(job_id, 'not wanted')) FROM held WHERE task = 'cancelled';
	SELECT count(jobq.fail(job_id, attempt, 'broken', retry => false)) FROM held WHERE task = 'dead';
	SELECT count(jobq.enqueue('due', queue => 'q', delay => '1 ms', job_key => 'due ' || n, group_key => 'g' || n % 3)) FROM generate_series(1, 300) n;
	SELECT count(jobq.enqueue('later', queue => 'q', delay => '1 day', job_key => 'later ' || n)) FROM generate_series(1, 20) n;
	SELECT count(jobq.enqueue('ready', queue => 'q', priority => n % 10, job_key => 'ready ' || n, group_key => 'g' || n % 3)) FROM generate_series(1, 100) n;
	SELECT count(*) FROM jobq.enqueue_batch('bulk', (SELECT jsonb_agg(repeat('x', 500) || n) FROM generate_series(1, 5000) n), queue => 'lots');
});
# What is there to compare with: each job, where it stands and its attempt.
my $places = q{
	SELECT task, line, attempt, count(*), sum(j.job_id), sum(hashtext(j::text)::bigint) FROM jobq.job j LEFT JOIN (
		SELECT job_id, attempt, 'ready' AS line FROM jobq.ready UNION ALL SELECT job_id, attempt, 'delayed' FROM jobq.delayed
		UNION ALL SELECT job_id, attempt, 'lease' FROM jobq.lease UNION ALL SELECT job_id, attempt, state FROM jobq.finished) l USING (job_id)
	GROUP BY task, line, attempt ORDER BY task, line, attempt};
my $before = $node->safe_psql('work', $places);
my $numbers = q{SELECT last_value FROM jobq.job_number};
my $number = $node->safe_psql('work', $numbers);
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('work') ], 'pg_dump');
like($before, qr/^crashed\|lease\|1\|50.*^due\|delayed\|0\|300.*^failed\|delayed\|1\|5.*^pruned\|dead\|1\|50/ms, 'there is work for a manager');

# What a manager makes of it.
(my $after = $before) =~ s/^pruned\|.*\n//m;
$after =~ s/^due\|delayed/due|ready/m;
$after =~ s/^failed\|delayed/failed|ready/m;
my ($dying) = $node->safe_psql('work', q{SELECT count(*), sum(j.job_id), sum(hashtext(j::text)::bigint) FROM jobq.job j JOIN jobq.lease USING (job_id) WHERE task = 'crashed' AND crashes = 1});
my ($living) = $node->safe_psql('work', q{SELECT count(*), sum(j.job_id), sum(hashtext(j::text)::bigint) FROM jobq.job j JOIN jobq.lease USING (job_id) WHERE task = 'crashed' AND crashes = 0});
$after =~ s/^crashed\|.*$/crashed|dead|1|$dying\ncrashed|delayed|1|$living/m;
my $leftovers = q{
	SELECT (SELECT count(*) FROM jobq.key k WHERE NOT EXISTS (SELECT FROM jobq.jobs j WHERE j.job_id = k.job_id AND j.job_key = k.job_key)) AS key_without_job,
		(SELECT count(*) FROM jobq.jobs j WHERE job_key IS NOT NULL AND NOT EXISTS (SELECT FROM jobq.key k WHERE k.job_id = j.job_id)) AS job_without_key,
		(SELECT count(*) FROM jobq.failure f WHERE NOT EXISTS (SELECT FROM jobq.job j WHERE j.job_id = f.job_id)) AS failure_without_job};

# With the managers off a restore is what was dumped.
$node->safe_psql('postgres', 'CREATE DATABASE still');
restore('still', '-j4');
is($node->safe_psql('still', $places), $before, 'without a manager all is as it was');
$node->append_conf('postgresql.conf', "jobq.enabled = on\njobq.sweep_grace = '10ms'");
$node->safe_psql('postgres', 'DROP DATABASE work; DROP DATABASE still');
$node->reload;

my $early = 0;
for my $round (1 .. $rounds)
{
	my $database = "r$round";
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	restore($database, '-j4');
	$early++ if slurp_file($node->logfile) =~ /jobq manager started for database "$database"/;
	becomes($database, $places, $after, "$database: what was due is done, and nothing else");
	like($node->safe_psql($database, $leftovers), qr/^\d+\|0\|/, "$database: no job is without its key");
	is($node->safe_psql($database, q{SELECT task, kind, count(*) FROM jobq.failures JOIN jobq.job USING (job_id) WHERE task IN ('crashed', 'failed') GROUP BY 1, 2 ORDER BY 1, 2}),
		"crashed|expired|50\nfailed|error|5", "$database: each expired lease is one failure");
	cmp_ok($node->safe_psql($database, $numbers), '>=', $number, "$database: the numbers go on");
	$node->safe_psql('postgres', "DROP DATABASE $database") if $round > 1;
}
cmp_ok($early, '>', 0, "a manager was there before the end of $early of $rounds restores");

is($node->safe_psql('r1', q{SELECT count(*) FILTER (WHERE jobq.complete(job_id, attempt)) FROM held}), '10', 'open leases are still their workers\'');
is($node->safe_psql('r1', q{SELECT jobq.enqueue('new', queue => 'q', job_key => 'ready 1') = (SELECT job_id FROM jobq.jobs WHERE job_key = 'ready 1')}), 't', 'a key is held');
is($node->safe_psql('r1', q{SELECT jobq.enqueue('new', queue => 'q') > (SELECT max(job_id) FROM jobq.job)}), 't', 'ids go on');
is($node->safe_psql('r1', q{SELECT jobq.enqueue('new', queue => 'lots') > 0; SELECT count(*) FROM jobq.claim('lots', 1000)}, extra_params => [ '-U', 'app' ]), "t\n1000", 'a member of the roles works');
is($node->safe_psql('r1', q{SELECT * FROM jobq.sweep()}, extra_params => [ '-U', 'narrow' ]), '0|0|0', 'a right given by hand is there');
like(($node->psql('r1', q{SELECT jobq.enqueue('a')}, extra_params => [ '-U', 'narrow' ]))[2], qr/permission denied/, '... and no other');

# Everything but the jobs: the manager looks at the lines and leaves them, until the jobs come.
my %data = contents();
my @jobs = grep { /^job$/ } keys %data;
is("@jobs", 'job', 'the table of jobs is in the dump');
$node->safe_psql('postgres', 'CREATE DATABASE lines_first');
restore_items('lines_first', 'head', grep { $_ ne 'job' } keys %data);
my $lines = join ' UNION ALL ', map { "SELECT '$_', count(*), sum(hashtext(t::text)::bigint) FROM jobq.$_ t" } qw(delayed failure finished key lease ready);
$lines .= ' ORDER BY 1';
my $lines_before = $node->safe_psql('lines_first', $lines);
like($lines_before, qr/^delayed\|325\|.*^finished\|80\|.*^lease\|60\|/ms, 'the lines are full');
has_a_round('lines_first');
is($node->safe_psql('lines_first', $lines), $lines_before, 'the manager leaves lines whose job is not there');
restore_items('lines_first', 'rest', 'job');
becomes('lines_first', $places, $after, 'when the jobs come it goes on');
is($node->safe_psql('lines_first', $leftovers), '0|0|0', '... and leaves nothing behind');

# Keys and failures at last: until a grace after the last table nobody ends or prunes their jobs.
$node->append_conf('postgresql.conf', "jobq.sweep_grace = '6s'");
$node->reload;
$node->safe_psql('postgres', 'CREATE DATABASE jobs_first');
restore_items('jobs_first', 'head', grep { !/^(key|failure)$/ } keys %data);
has_a_round('jobs_first');
restore_items('jobs_first', 'rest', 'key', 'failure');
becomes('jobs_first', $places, $after, 'jobs before their keys and failures: what was due is done in the end');
is($node->safe_psql('jobs_first', $leftovers), '0|0|0', '... and leaves nothing behind');

my $log = slurp_file($node->logfile);
unlike($log, qr/\] jobq \w+ (ERROR|FATAL|PANIC|WARNING)|"jobq manager" .*exited with exit code [1-9]|manager: cannot/, 'nothing in the log of jobq');
$node->stop;

done_testing();

sub restore
{
	my ($database, @options) = @_;
	my ($out, $err);
	my $ok = IPC::Run::run([ $node->installed_command('pg_restore'), '--exit-on-error', @options, '-d', $node->connstr($database), $dump ],
		'>', \$out, '2>', \$err);
	ok($ok && $err eq '', "pg_restore @options into $database") or diag($err);
	return;
}

# Lines of the dump's contents: the data of jobq's tables by name.
sub contents
{
	my $list = `@{[ $node->installed_command('pg_restore') ]} -l $dump`;
	my %found;
	while ($list =~ /^(\d+; .* (?:TABLE DATA|SEQUENCE SET) jobq (\S+) .*)$/mg) { $found{$2} = $1; }
	return %found;
}

# Restores the data of the named tables; with 'head' what is not data of jobq before it.
sub restore_items
{
	my ($database, $part, @names) = @_;
	my $list = `@{[ $node->installed_command('pg_restore') ]} -l $dump`;
	my @head = grep { /^\d/ && !/(TABLE DATA|SEQUENCE SET) jobq/ } split /\n/, $list;
	my $file = "$dir/$database.$part";
	unlink $file;
	append_to_file($file, join("\n", $part eq 'head' ? @head : (), map { $data{$_} } @names) . "\n");
	restore($database, '-L', $file);
	return;
}

# The manager has looked at everything since now.
sub has_a_round
{
	my ($database) = @_;
	my $id = $node->safe_psql($database, q{SELECT jobq.enqueue('round', queue => 'round of the manager', delay => '1 ms') FROM jobq.create_queue('round of the manager')});
	becomes($database, "SELECT count(*) FROM jobq.ready WHERE job_id = $id", '1', 'the manager has made a round');
	$node->safe_psql($database, q{SELECT jobq.drop_queue('round of the manager', force => true)});
	return;
}

sub becomes
{
	my ($database, $query, $expected, $what) = @_;
	my $end = time + $deadline;
	my $found = '';
	while (time < $end)
	{
		$found = $node->safe_psql($database, $query);
		last if $found eq $expected;
		usleep(50_000);
	}
	is($found, $expected, $what);
	return;
}
