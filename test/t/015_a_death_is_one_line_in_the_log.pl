# A death is one line in the server's log, whoever found it: a failure, a sweep or a claim. Normal work leaves none.
use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
# Leases are ended by hand here, which a manager would not be told of, nor a sweep beside one.
$node->append_conf('postgresql.conf', 'jobq.enabled = off');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION jobq');

sub lines { return grep { /jobq: / } split /\n/, slurp_file($node->logfile) }

$node->safe_psql('postgres', q{
    SELECT jobq.create_queue('log', max_attempts => 1, max_crashes => 1);
    SELECT jobq.enqueue('fine', queue => 'log');
    SELECT jobq.complete(job_id, attempt) FROM jobq.claim('log');
    SELECT jobq.enqueue('snoozed', queue => 'log');
    SELECT jobq.snooze(job_id, attempt, '1 h') FROM jobq.claim('log');
    SELECT jobq.enqueue('cancelled', queue => 'log');
    SELECT jobq.cancel(job_id) FROM jobq.claim('log');
    SELECT * FROM jobq.sweep();
});
is(scalar(lines()), 0, 'normal work leaves no line');

my $failed = $node->safe_psql('postgres', q{SELECT jobq.enqueue('fails', queue => 'log')});
$node->safe_psql('postgres', q{SELECT jobq.fail(job_id, attempt, 'no') FROM jobq.claim('log')});
my $crashed = $node->safe_psql('postgres', q{SELECT jobq.enqueue('crashes', queue => 'log')});
$node->safe_psql('postgres', q{
    SELECT count(*) FROM jobq.claim('log');
    UPDATE jobq.lease SET expires_at = clock_timestamp();
    SELECT * FROM jobq.sweep();
});
my $exhausted = $node->safe_psql('postgres', q{SELECT jobq.enqueue('is exhausted', queue => 'log')});
$node->safe_psql('postgres', qq{
    UPDATE jobq.ready SET tries = 1 WHERE job_id = $exhausted;
    SELECT count(*) FROM jobq.claim('log');
});

my @lines = lines();
is(scalar(@lines), 3, 'each death left one line');
like($lines[0], qr/jobq: job $failed of queue "log" is dead: attempts exhausted$/, 'a failure');
like($lines[1], qr/jobq: job $crashed of queue "log" is dead: crashed 1 times$/, 'an expired lease');
like($lines[2], qr/jobq: job $exhausted of queue "log" is dead: attempts exhausted$/, 'limits reached before a claim');

# What is rolled back, whole or to a savepoint, has not died; a page of the sweep that is worked row by row says it once.
my $spared = $node->safe_psql('postgres', q{SELECT jobq.enqueue('is spared', queue => 'log')});
$node->safe_psql('postgres', qq{
    SELECT count(*) FROM jobq.claim('log');
    BEGIN;
    SELECT jobq.fail($spared, 1, 'no');
    ROLLBACK;
    BEGIN;
    SAVEPOINT s;
    SELECT jobq.fail($spared, 1, 'no');
    ROLLBACK TO s;
    COMMIT;
    SELECT jobq.complete($spared, 1);
});
is(scalar(lines()), 3, 'a death that was rolled back leaves none');

my $bad = $node->safe_psql('postgres', q{SELECT jobq.enqueue('cannot end', queue => 'log')});
my $good = $node->safe_psql('postgres', q{SELECT jobq.enqueue('ends', queue => 'log')});
$node->safe_psql('postgres', qq{
    SELECT count(*) FROM jobq.claim('log', 2);
    INSERT INTO jobq.finished (job_id, queue_id, ended_at, attempt, tries, state)
    SELECT job_id, queue_id, now(), 1, 1, 'completed' FROM jobq.lease WHERE job_id = $bad;
    UPDATE jobq.lease SET expires_at = clock_timestamp();
    SELECT * FROM jobq.sweep();
});
@lines = lines();
is(scalar(@lines), 4, 'a page with a bad row says a death once');
like($lines[3], qr/jobq: job $good of queue "log" is dead/, 'that of the good one');

$node->stop;
done_testing();
