
# Promoting, rescuing and pruning read few pages however many dead rows an old snapshot pins (promise 8), and miss no row: what others put into
# a line below the low mark lowers it when it can be seen, what others had taken out of it was seen.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $many = 20000;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\nautovacuum = off\nshared_buffers = 256MB\njobq.sweep_grace = '0'\njobq.sweep_interval = '100 ms'\njobq.claim_in_transaction = allow");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', keep_completed => '1 ms', keep_dead => '1 ms', retry_base => '100 ms', max_crashes => 5);
	-- Where the jobs of that name stand.
	CREATE FUNCTION public.stand(name text) RETURNS text LANGUAGE sql AS $$
		SELECT coalesce(string_agg(line || ' ' || attempt, ', ' ORDER BY line, attempt), 'gone') FROM (
			SELECT 'delayed' AS line, job_id, attempt FROM jobq.delayed UNION ALL SELECT 'ready', job_id, attempt FROM jobq.ready
			UNION ALL SELECT 'lease', job_id, attempt FROM jobq.lease UNION ALL SELECT state, job_id, attempt FROM jobq.finished) l
		JOIN jobq.job USING (job_id) WHERE task = name $$;
	CREATE FUNCTION public.id(name text) RETURNS bigint LANGUAGE sql AS $$SELECT job_id FROM jobq.job WHERE task = name$$;
	-- A job with a lease.
	CREATE FUNCTION public.start(name text, length interval) RETURNS bigint LANGUAGE sql AS $$
		SELECT jobq.enqueue(name, queue => 'q', priority => 0, job_key => name);
		SELECT job_id FROM jobq.claim('q', lease => length) $$;
});
my $limit = 0.5 * $PostgreSQL::Test::Utils::timeout_default;
my $session = $node->background_psql('postgres');
my $late = $node->background_psql('postgres');
$session->query_safe('SELECT * FROM jobq.sweep()') for 1 .. 6;

# Twenty thousand rows of each line come and go while somebody looks at the past; many of them have one instant.
my $past = $node->background_psql('postgres');
$past->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM jobq.job');
$node->safe_psql('postgres', qq{
	SELECT count(*) FROM jobq.enqueue_batch('delayed', (SELECT jsonb_agg(i) FROM generate_series(1, $many) i), queue => 'q', delay => '1 ms')});
$node->poll_query_until('postgres', 'SELECT count(*) FROM jobq.delayed', '0') or die;
$node->safe_psql('postgres', q{SELECT count(jobq.complete(job_id, attempt)) FROM jobq.claim('q', 1000, lease => '5 s')}) for 1 .. $many / 1000;
$node->poll_query_until('postgres', 'SELECT count(*) FROM jobq.job', '0') or die;
$session->query_safe('SELECT pg_sleep(5)'); # all of them have an instant of the past
for my $round (1 .. 3)
{
	is($session->query_safe('SELECT promoted, retried, died FROM jobq.sweep()'), '0|0|0', "round $round: nothing is left to do");
	few('SELECT * FROM jobq.sweep()', 100, "round $round: a sweep");
}

# So does the manager. What it has read is told at most once a second, when it has done something more.
pass_by();
my ($entries, $scans) = told();
pass_by() for 1 .. 20;
my ($entries_then, $scans_then) = told();
cmp_ok($scans_then - $scans, '>', 60, 'what the manager read is counted');
# The look that comes once a minute may be among them.
cmp_ok($entries_then - $entries, '<', 4 * $many, 'the manager does not walk over what it has done before');
few('SELECT * FROM jobq.sweep()', 100, 'a sweep afterwards');

# Rows that come to be seen late, below a low mark that has passed them: made in a transaction that stays open until a later row is done.
my %late = (
	'enqueue' => [ '', q{SELECT jobq.enqueue('NAME', queue => 'q', delay => '1 ms')}, 'ready 0' ],
	'enqueue_batch' => [ '', q{SELECT count(*) FROM jobq.enqueue_batch('NAME', '[1]', queue => 'q', delay => '1 ms')}, 'ready 0' ],
	'enqueue under a savepoint' => [ '', q{SAVEPOINT a; SELECT jobq.enqueue('NAME', queue => 'q', delay => '1 ms'); RELEASE a}, 'ready 0' ],
	'replace' => [ q{SELECT jobq.enqueue('NAME', queue => 'q', delay => '1 h', job_key => 'NAME')}, q{SELECT jobq.enqueue('NAME', queue => 'q', delay => '1 ms', job_key => 'NAME', job_key_mode => 'replace')}, 'ready 0' ],
	'reschedule' => [ q{SELECT jobq.enqueue('NAME', queue => 'q', delay => '1 h')}, q{SELECT jobq.reschedule(public.id('NAME'), clock_timestamp() + interval '1 ms')}, 'ready 0' ],
	'fail' => [ q{SELECT public.start('NAME', '1 h')}, q{SELECT jobq.fail(public.id('NAME'), 1, 'e', '1 ms')}, 'ready 1' ],
	'snooze' => [ q{SELECT public.start('NAME', '1 h')}, q{SELECT jobq.snooze(public.id('NAME'), 1, '1 ms')}, 'ready 1' ],
	'retry' => [ q{SELECT jobq.alter_queue('q', keep_dead => '1 h'); SELECT jobq.cancel(jobq.enqueue('NAME', queue => 'q')); SELECT jobq.alter_queue('q', keep_dead => '1 ms')}, q{SELECT jobq.retry(public.id('NAME'), clock_timestamp() + interval '1 ms')}, 'ready 0' ],
	'claim' => [ q{SELECT jobq.enqueue('NAME', queue => 'q', priority => 0)}, q{SELECT count(*) FROM jobq.claim('q', lease => '1 s')}, 'ready 1' ],
	'renew' => [ q{SELECT public.start('NAME', '1 h')}, q{SELECT jobq.renew(public.id('NAME'), 1, '1 s')}, 'ready 1' ],
	'renew_batch' => [ q{SELECT public.start('NAME', '1 h')}, q{SELECT jobq.renew_batch(ARRAY[public.id('NAME')], '{1}', '1 s')}, 'ready 1' ],
	'complete' => [ q{SELECT public.start('NAME', '1 h')}, q{SELECT jobq.complete(public.id('NAME'), 1)}, 'gone' ],
	'complete_batch' => [ q{SELECT public.start('NAME', '1 h')}, q{SELECT jobq.complete_batch(ARRAY[public.id('NAME')], '{1}')}, 'gone' ],
	'complete_and_claim' => [ q{SELECT public.start('NAME', '1 h')}, q{SELECT jobq.complete_and_claim(ARRAY[public.id('NAME')], '{1}', 'q')}, 'gone' ],
	'cancel' => [ q{SELECT public.start('NAME', '1 h')}, q{SELECT jobq.cancel(public.id('NAME'))}, 'gone' ],
	'death' => [ q{SELECT public.start('NAME', '1 h')}, q{SELECT jobq.fail(public.id('NAME'), 1, 'e', retry => false)}, 'gone' ],
	'sweep' => [ q{SELECT public.start('NAME', '1 h'); UPDATE jobq.lease SET expires_at = clock_timestamp()}, q{SELECT jobq.renew(public.id('NAME'), 1, '1 s'); SELECT pg_sleep(1.1); SELECT * FROM jobq.sweep()}, 'ready 1' ],
	'COPY' => [ q{CREATE TABLE copied AS SELECT 10^15::bigint, queue_id FROM jobq.queue WHERE name = 'q'; COPY copied TO PROGRAM 'cat >copied'},
		q{INSERT INTO jobq.job (job_id, queue_id, enqueued_at, priority, task, payload) SELECT 10^15::bigint, queue_id, now(), 5, 'NAME', '{}' FROM jobq.queue WHERE name = 'q'; COPY jobq.delayed FROM PROGRAM 'cat row'}, 'ready 0' ]);
my $queue_id = $node->safe_psql('postgres', q{SELECT queue_id FROM jobq.queue WHERE name = 'q'});
append_to_file($node->data_dir . '/row', join("\t", '1000000000000000', $queue_id, '1969-07-20 20:17:40+00', 0, 0, 0) . "\n");
$late{COPY}[0] = '';
my $other = 0;
for my $verb (sort keys %late)
{
	my ($prepare, $do, $there) = map { s/NAME/$verb/gr } @{ $late{$verb} };
	$node->safe_psql('postgres', $prepare) if $prepare;
	$late->query_safe("BEGIN; $do");
	pass_by();
	my $begun = time;
	$late->query_safe('COMMIT');
	ok(stands($verb, $there), "$verb: a row that is seen late is done") or diag($node->safe_psql('postgres', "SELECT public.stand('$verb')"));
	cmp_ok(time - $begun, '<', $limit, "$verb: and not by the look that comes once a minute");
	$node->safe_psql('postgres', q{SELECT jobq.purge_queue('q')});
}

# Rows that are taken and come back.
my %back = (
	'complete' => [ q{SELECT public.start('NAME', '1 s')}, q{SELECT jobq.complete(public.id('NAME'), 1)}, 'ready 1' ],
	'renew' => [ q{SELECT public.start('NAME', '1 s')}, q{SELECT jobq.renew(public.id('NAME'), 1, '1 h')}, 'ready 1' ],
	'reschedule' => [ q{SELECT jobq.enqueue('NAME', queue => 'q', delay => '1 s')}, q{SELECT jobq.reschedule(public.id('NAME'), clock_timestamp() + interval '1 h')}, 'ready 0' ],
	'cancel under a savepoint' => [ q{SELECT jobq.enqueue('NAME', queue => 'q', delay => '1 s')}, q{SAVEPOINT a; SELECT jobq.cancel(public.id('NAME'))}, 'ready 0', 'ROLLBACK TO a' ]);
for my $verb (sort keys %back)
{
	my ($prepare, $do, $there, $end) = map { s/NAME/$verb back/gr } @{ $back{$verb} };
	$node->safe_psql('postgres', $prepare);
	$late->query_safe("BEGIN; $do");
	$session->query_safe('SELECT pg_sleep(1.1)');
	pass_by();
	my $begun = time;
	$late->query_safe($end // 'ROLLBACK');
	ok(stands("$verb back", $there), "$verb: a row that comes back is done");
	cmp_ok(time - $begun, '<', $limit, "$verb: and not by the look that comes once a minute");
	$late->query_safe('COMMIT') if $end;
	$node->safe_psql('postgres', q{SELECT jobq.purge_queue('q')});
}

# A sweep sees what its own transaction has done, and all that an older snapshot shows.
is($late->query_safe(q{
	BEGIN;
	SELECT jobq.enqueue('own', queue => 'q', delay => '1 ms') > 0;
	SELECT pg_sleep(0.01);
	SELECT promoted FROM jobq.sweep();
	ROLLBACK}), "t\n\n1", 'a sweep promotes a job of its own transaction');

$past->query_safe('COMMIT');
$_->quit for $past, $session, $late;
$node->stop;
done_testing();

sub stands { my ($name, $where) = @_; return $node->poll_query_until('postgres', "SELECT public.stand('$name')", $where) }

# Rows with later instants go through all lines, so that their low marks rise.
sub pass_by
{
	my $name = 'other ' . ++$other;
	$node->safe_psql('postgres', "SELECT jobq.enqueue('$name', queue => 'q', priority => 0, delay => '1 ms')");
	$node->poll_query_until('postgres', "SELECT public.stand('$name')", 'ready 0') or die;
	$node->safe_psql('postgres', q{SELECT count(*) FROM jobq.claim('q', lease => '1 s')});
	$node->poll_query_until('postgres', "SELECT public.stand('$name')", 'ready 1') or die;
	$node->safe_psql('postgres', q{SELECT jobq.complete(job_id, attempt) FROM jobq.claim('q')});
	$node->poll_query_until('postgres', "SELECT public.stand('$name')", 'gone') or die;
	return;
}

sub told
{
	$session->query_safe('SELECT pg_sleep(1.1)');
	pass_by();
	return split /\|/, $session->query_safe(q{
		SELECT sum(idx_tup_read), sum(idx_scan) FROM pg_stat_user_indexes WHERE indexrelname IN ('delayed_run_at', 'lease_expires_at', 'finished_prune_at')});
}

# The pages that a statement touches, the second time it is run in the session: the first one reads the catalogs for its plan.
sub few
{
	my ($statement, $most, $what) = @_;
	my $pages;
	for (1 .. 2)
	{
		my $plan = $session->query_safe("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) $statement");
		my ($hit, $read) = $plan =~ /"Shared Hit Blocks": (\d+),\s+"Shared Read Blocks": (\d+)/;
		$pages = $hit + $read;
	}
	cmp_ok($pages, '<=', $most, "$what: $pages pages, at most $most");
	return;
}
