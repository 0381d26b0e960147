
# A due row that another transaction has, and what applications do with COPY and with the extension itself, keep the manager from nobody
# else's work, and no sleeper from hearing of it (promises 4 and 6).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\njobq.sweep_grace = '1 h'\njobq.sweep_interval = '60 s'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION jobq');
ok($node->poll_query_until('postgres', "SELECT ok FROM jobq.health() WHERE check_name = 'last sweep'"), 'a manager is at work');

# With the longest sweep_interval and grace: whatever is late here is late by a minute or an hour.
my $holder = $node->background_psql('postgres');
my $held = $node->safe_psql('postgres', q{SELECT jobq.enqueue('held', delay => '1 s')});
$holder->query_safe(qq{BEGIN; SELECT jobq.reschedule($held, clock_timestamp() + interval '1 day')});
ok($node->poll_query_until('postgres', qq{SELECT run_at < clock_timestamp() - interval '1 s' FROM jobq.jobs WHERE job_id = $held}), 'a job is due and held');
is($node->safe_psql('postgres', q{SELECT jobq.enqueue('other', queue => 'default', delay => '1 s') IS NOT NULL}), 't', 'another one is due after it');
is($node->safe_psql('postgres', q{CALL jobq.wait(timeout => '20 s')}), 't', '... and becomes ready at its time');
is($node->safe_psql('postgres', q{SELECT task FROM jobq.claim(max_jobs => 5)}), 'other', '... alone');
$holder->query_safe('ROLLBACK');
is($node->safe_psql('postgres', q{CALL jobq.wait(timeout => '20 s')}), 't', 'the held one follows when it is let go');
is($node->safe_psql('postgres', q{SELECT task FROM jobq.claim(max_jobs => 5, lease => '1 s')}), 'held', '... and is claimed');

# COPY into a table of an application is no restore. Nor is one that the server refuses.
$node->safe_psql('postgres', q{CREATE ROLE nobody_much; CREATE TABLE mine (n int); GRANT ALL ON mine TO nobody_much});
my $data = $node->basedir . '/rows';
append_to_file($data, "1\n2\n");
my $copy = q{
SET ROLE nobody_much;
\\copy mine FROM '%s'
BEGIN;
SAVEPOINT a;
\\copy jobq.failure FROM '%s'
ROLLBACK TO a;
COMMIT;
};
$copy =~ s/%s/$data/g;
$node->psql('postgres', $copy) for 1 .. 3;
is($node->safe_psql('postgres', 'SELECT count(*) FROM mine'), '6', 'an application copies rows into a table of its own');
ok($node->poll_query_until('postgres', qq{SELECT count(*) = 1 FROM jobq.failures WHERE job_id = $held AND kind = 'expired'}), 'the lease that expired meanwhile is swept');

# COPY into jobq's tables is one: leases are left alone for the grace.
$node->safe_psql('postgres', q{SELECT jobq.enqueue('leased', priority => 0)});
my $leased = $node->safe_psql('postgres', q{SELECT job_id FROM jobq.claim(lease => '1 s')});
$node->safe_psql('postgres', "COPY jobq.failure TO PROGRAM 'cat > /dev/null'; COPY jobq.failure FROM PROGRAM 'true'");
is($node->safe_psql('postgres', q{SELECT jobq.enqueue('late', delay => '3 s') IS NOT NULL; CALL jobq.wait(timeout => '20 s')}), "t\nt", 'after a restore jobs become ready');
is($node->safe_psql('postgres', qq{SELECT lease_expires_at < clock_timestamp() FROM jobq.jobs WHERE job_id = $leased}), 't', '... and leases are left alone');

# Who waits while the extension goes and comes again finds the new one; while it is gone there is nothing to wait for.
my $waiter = $node->background_psql('postgres', on_error_stop => 0);
$waiter->query_safe('SELECT 1');
my $asleep = q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'CALL jobq.wait%' AND wait_event_type = 'Extension'};
$node->safe_psql('postgres', q{SELECT jobq.create_queue('mail')});
$waiter->query_until(qr/begun/, "\\echo begun\nCALL jobq.wait('mail', '1 h');\n");
ok($node->poll_query_until('postgres', $asleep), 'a session waits');
$node->safe_psql('postgres', q{BEGIN; DROP EXTENSION jobq; CREATE EXTENSION jobq; SELECT jobq.create_queue('other'), jobq.create_queue('mail'); COMMIT});
ok($node->poll_query_until('postgres', $asleep), '... on, for the new extension');
$node->safe_psql('postgres', q{SELECT jobq.enqueue('t', queue => 'mail')});
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'CALL jobq.wait%' AND state = 'active'}), '... and hears of a job in it');
$waiter->query_until(qr/begun/, "DELETE FROM jobq.ready;\n\\echo begun\nCALL jobq.wait('mail', '1 h');\n");
ok($node->poll_query_until('postgres', $asleep), 'it waits again');
$node->safe_psql('postgres', 'DROP EXTENSION jobq');
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'CALL jobq.wait%' AND state = 'active'}), '... and ends with the extension');
$waiter->quit;
$holder->quit;

done_testing();
