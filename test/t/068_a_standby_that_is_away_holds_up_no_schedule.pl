
# While a synchronous standby is away, whoever commits waits for it, but no manager: schedules fire, jobs become ready, and databases are dropped (which
# a process that waits for a standby would hold up, whatever database it is in). No claim returns meanwhile, so what was fired is started by nobody
# before the standby knows of it (promises 7 and 10, cases 111, 122).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql($_, q{CREATE EXTENSION jobq; SELECT jobq.schedule_job('s', '* * * * * *', 't', overlap => 'allow'); SELECT jobq.enqueue('due', delay => '3 s')}) for qw(postgres other);
ok($node->poll_query_until($_, q{SELECT count(*) > 0 FROM jobq.schedule_runs}), "$_: it fires") for qw(postgres other);
$node->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'");
$node->reload;
my $since = $node->safe_psql('postgres', q{SELECT clock_timestamp() + interval '1 s'});
ok($node->poll_query_until('postgres', "SELECT count(*) > 2 FROM jobq.schedule_runs WHERE run_at > '$since'"), 'it fires while the standby is away');
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM jobq.jobs WHERE task = 'due' AND state = 'ready'}), 'a job becomes ready');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq manager' AND wait_event = 'SyncRep'}), '0', 'no manager waits');
my $worker = $node->background_psql('postgres');
$worker->query_until(qr/claims/, "\\echo claims\nSELECT job_id FROM jobq.claim();\n");
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ 'jobq.claim' AND pid <> pg_backend_pid() AND wait_event = 'SyncRep'}), 'a claim does not return before');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ 'jobq.claim' AND pid <> pg_backend_pid()});
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'}), 'its worker is gone');
my $begun = time;
$node->safe_psql('postgres', 'SET synchronous_commit = local; DROP DATABASE other');
cmp_ok(time - $begun, '<', 10, 'a database with a manager is dropped');
$begun = time;
$node->stop('fast');
cmp_ok(time - $begun, '<', 20, 'and the server stops');
done_testing();
