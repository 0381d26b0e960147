
# A table that somebody has locked stops the chores that need it: one line in the log for each, the others go on, nothing hangs, and the work
# is done when the lock is gone. REINDEX and VACUUM FULL beside the work: no deadlock. One bad row stops nobody, and is said once (promise 6,
# cases 92, 102, 117, 183). By hand: JOBQ_LOCK_SECONDS=20 holds each lock longer.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{JOBQ_LOCK_SECONDS} || 3;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\ndeadlock_timeout = '100 ms'\njobq.sweep_grace = '0'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', max_crashes => 1, keep_completed => '1 ms');
	CREATE FUNCTION public.manager() RETURNS int LANGUAGE sql AS $$SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq manager'$$;
	-- A job with a lease, for prepare()'s caller to let expire or to complete.
	CREATE FUNCTION public.start(name text) RETURNS bigint LANGUAGE sql SET jobq.claim_in_transaction = allow AS $$
		SELECT jobq.enqueue(name, queue => 'q', priority => 0);
		SELECT job_id FROM jobq.claim('q', lease => '1 h') $$;
	-- Where the jobs of that name stand, in this order: delayed ready lease completed dead
	CREATE FUNCTION public.stand(name text) RETURNS text LANGUAGE sql AS $$
		SELECT concat_ws(' ', (SELECT count(*) FROM jobq.delayed JOIN jobq.job USING (job_id) WHERE task = name),
			(SELECT count(*) FROM jobq.ready JOIN jobq.job USING (job_id) WHERE task = name),
			(SELECT count(*) FROM jobq.lease JOIN jobq.job USING (job_id) WHERE task = name),
			(SELECT count(*) FROM jobq.finished JOIN jobq.job USING (job_id) WHERE task = name AND state = 'completed'),
			(SELECT count(*) FROM jobq.finished JOIN jobq.job USING (job_id) WHERE task = name AND state = 'dead')) $$;
});
ok($node->poll_query_until('postgres', 'SELECT public.manager() IS NOT NULL'), 'a manager is there');
my $manager = $node->safe_psql('postgres', 'SELECT public.manager()');

sub lines { my ($from, $pattern) = @_; return scalar(() = substr(slurp_file($node->logfile), $from) =~ /$pattern/g) }
sub stands { my ($name, $where, $what) = @_; ok($node->poll_query_until('postgres', "SELECT public.stand('$name')", $where), $what); return }

# What a chore leaves when it has done its work, and what makes work for it that needs no table of %need.
my %done = (promote => '0 1 0 0 0', rescue => '0 0 0 0 1', prune => '0 0 0 0 0');
my %make = (
	promote => q{SELECT jobq.enqueue('promote NAME', queue => 'q', delay => '1 ms')},
	rescue => q{SELECT jobq.renew(job_id, 1, '1 s') FROM jobq.job WHERE task = 'rescue NAME'},
	prune => q{SELECT jobq.complete(job_id, 1) FROM jobq.job WHERE task = 'prune NAME'});
my %need = ('jobq.ready' => ['promote'], 'jobq.failure' => [ 'rescue', 'prune' ]);

my $locker = $node->background_psql('postgres');
my $watcher = $node->background_psql('postgres');
for my $table (sort keys %need)
{
	my $from = -s $node->logfile;
	$node->safe_psql('postgres', "SELECT public.start('$_ $table')") for qw(rescue prune);
	$locker->query_safe("BEGIN; LOCK TABLE $table IN ACCESS EXCLUSIVE MODE");
	my $since = time;
	$node->safe_psql('postgres', $make{$_} =~ s/NAME/$table/r) for sort keys %make;
	my %stopped = map { $_ => 1 } @{ $need{$table} };
	for my $chore (grep { !$stopped{$_} } sort keys %make)
	{
		ok($node->poll_query_until('postgres', $table eq 'jobq.ready'
			? "SELECT (SELECT count(*) FROM jobq.lease JOIN jobq.job USING (job_id) WHERE task LIKE '$chore %') + (SELECT count(*) FROM jobq.finished JOIN jobq.job USING (job_id) WHERE task LIKE '$chore %' AND state = 'completed')"
			: "SELECT count(*) FROM jobq.delayed", '0'), "$table is locked: $chore goes on");
	}
	$node->wait_for_log(qr/jobq manager: cannot $_ jobs: canceling statement due to lock timeout \(55P03\)/, $from) for @{ $need{$table} };
	my ($looks, $stuck, $sick) = (0, 0, 0);
	while (time - $since < $seconds || !$looks)
	{
		$looks++;
		$stuck++ if $watcher->query_safe("SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'jobq%' AND clock_timestamp() - xact_start > interval '2 s'") ne '0';
		$sick++ if $watcher->query_safe("SELECT count(*) FROM jobq.health() WHERE NOT ok AND check_name IN ('manager', 'last sweep', 'oldest snapshot')") ne '0';
		select(undef, undef, undef, 0.1);
	}
	is($stuck, 0, "$table is locked: no transaction of jobq hangs");
	is($sick, 0, "$table is locked: health() sees a manager at work");
	is(lines($from, qr/jobq manager: cannot (?!read lanes)/), scalar(@{ $need{$table} }), "$table is locked: one line for each chore that needs it");
	cmp_ok(lines($from, qr/jobq manager: cannot read lanes/), '<=', $table eq 'jobq.ready' ? 1 : 0, "$table is locked: at most one line for the look at the lanes");
	$locker->query_safe('COMMIT');
	stands("$_ $table", $done{$_}, "$table is free: $_ is done") for sort keys %make;
}

# Everything needs this one.
my $from = -s $node->logfile;
$node->safe_psql('postgres', "SELECT public.start('$_ job')") for qw(rescue prune);
$node->safe_psql('postgres', q{SELECT jobq.alter_queue('q', keep_completed => '1 s')});
$node->safe_psql('postgres', "BEGIN; $make{rescue}; $make{prune}; SELECT jobq.enqueue('promote NAME', queue => 'q', delay => '1 s'); COMMIT" =~ s/NAME/job/gr);
$locker->query_safe('BEGIN; LOCK TABLE jobq.job IN ACCESS EXCLUSIVE MODE');
$watcher->query_safe("SELECT pg_sleep($seconds)");
is($watcher->query_safe("SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'jobq%' AND clock_timestamp() - xact_start > interval '2 s'"), '0', 'jobq.job is locked: nothing hangs');
cmp_ok(lines($from, qr/jobq manager: cannot/), '<=', 3, 'jobq.job is locked: at most a line for each chore');
$locker->query_safe('COMMIT');
stands("$_ job", $done{$_}, "jobq.job is free: $_ is done") for sort keys %make;
$_->quit for $locker, $watcher;

# Locks that come and go, in whatever order the commands take them.
my $script = "$PostgreSQL::Test::Utils::tmp_check/rebuild.sql";
append_to_file($script, join('', map { "REINDEX TABLE jobq.$_;\nVACUUM FULL jobq.$_;\nCLUSTER jobq.$_ USING ${_}_pkey;\n" } qw(ready delayed lease finished failure job key)) x 4);
my $rebuild = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', $script ], '>', \my $out, '2>', \my $err);
my $made = 0;
my $worker = $node->background_psql('postgres');
while ($rebuild->pumpable)
{
	$worker->query_safe(q{SELECT jobq.enqueue('beside', queue => 'q', delay => '5 ms'); SELECT jobq.complete(public.start('beside'), 1)});
	$made++;
	$rebuild->pump_nb;
}
$rebuild->finish;
is($rebuild->full_result(0), 0, 'REINDEX, VACUUM FULL and CLUSTER come through');
is($err, '', 'without a word');
cmp_ok($made, '>=', 5, 'and so does work beside them');
stands('beside', "0 $made 0 0 0", 'all of it is done');
$worker->quit;
is(lines(0, qr/deadlock detected/), 0, 'no deadlock');
is($node->safe_psql('postgres', 'SELECT public.manager()'), $manager, 'it was one manager all the time');
$node->safe_psql('postgres', "SELECT jobq.purge_queue('q')");

# A bad row among good ones: a job that stands in two lines.
$from = -s $node->logfile;
$node->safe_psql('postgres', q{
	CREATE TABLE bad (task text, job_id bigint);
	BEGIN;
	SELECT jobq.enqueue_batch('promote', jsonb_agg(i), queue => 'q', delay => '500 ms') FROM generate_series(1, 30) AS i;
	INSERT INTO bad SELECT 'promote', min(job_id) + 7 FROM jobq.delayed;
	INSERT INTO jobq.ready (queue_id, priority, tag, job_id, attempt, tries, crashes) SELECT queue_id, 9, 1000000000, job_id, 0, 0, 0 FROM jobq.delayed JOIN bad USING (job_id);
	COMMIT;
	SELECT jobq.enqueue_batch('rescue', '[1,2,3,4,5,6,7,8,9,10]', queue => 'q', priority => 0);
	SELECT count(*) FROM jobq.claim('q', 10, lease => '1 h');
	INSERT INTO bad SELECT task, min(job_id) + 4 FROM jobq.lease JOIN jobq.job USING (job_id) GROUP BY task;
	INSERT INTO jobq.finished (job_id, queue_id, ended_at, attempt, tries, state) SELECT job_id, queue_id, now(), 1, 1, 'completed' FROM jobq.lease JOIN bad USING (job_id) WHERE task = 'rescue';
	SELECT count(*) FROM jobq.renew_batch(ARRAY(SELECT job_id FROM jobq.job WHERE task = 'rescue' ORDER BY 1), array_fill(1, '{10}'), '1 s');
});
stands('promote', '1 30 0 0 0', 'all but the bad row are promoted');
stands('rescue', '0 0 1 1 9', 'all but the bad row are swept');
for my $round (1 .. 5)
{
	$node->safe_psql('postgres', "SELECT jobq.enqueue('round $round', queue => 'q', delay => '1 ms')");
	$node->safe_psql('postgres', "SELECT jobq.complete(public.start('round'), 1)");
	$node->poll_query_until('postgres', "SELECT public.stand('round $round')", '0 1 0 0 0') or die;
}
for (split /\n/, $node->safe_psql('postgres', 'SELECT * FROM bad ORDER BY task'))
{
	my ($chore, $job) = split /\|/;
	is(lines($from, qr/jobq manager: cannot $chore job $job: .*; it stays where it is/), 1, "$chore: the bad row is said once");
}
is(lines($from, qr/jobq manager: cannot/), 2, 'and nothing else is');

# Mended: a new manager, or the next look of this one within the minute, does them.
$node->safe_psql('postgres', q{
	DELETE FROM jobq.ready WHERE job_id = (SELECT job_id FROM bad WHERE task = 'promote');
	DELETE FROM jobq.finished WHERE job_id = (SELECT job_id FROM bad WHERE task = 'rescue');
	SELECT pg_terminate_backend(public.manager());
});
stands('promote', '0 30 0 0 0', 'the mended row is promoted');
stands('rescue', '0 0 0 0 10', 'the mended row is swept');
$node->stop;
done_testing();
