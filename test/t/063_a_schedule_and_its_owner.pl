
# A schedule stops with its reason when its owner is dropped, and no other one does; a new name is no matter (cases 139, 141). So it is with a queue
# that is dropped, and said in the log once.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_line_prefix = '%m [%p] %b '");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('gone');
	CREATE ROLE leaver IN ROLE jobq_scheduler;
	CREATE ROLE "Old ""Name" IN ROLE jobq_scheduler;
	SET ROLE leaver;
	SELECT jobq.schedule_job('leaver''s', '* * * * * *', 't', overlap => 'allow');
	SET ROLE "Old ""Name";
	SELECT jobq.schedule_job('renamed', '* * * * * *', 't', overlap => 'allow');
	RESET ROLE;
	SELECT jobq.schedule_job('queue', '* * * * * *', 't', 'null', 'gone', overlap => 'allow');
});
ok($node->poll_query_until('postgres', q{SELECT count(DISTINCT schedule) = 3 FROM jobq.schedule_runs WHERE state = 'enqueued'}), 'all fire');
$node->safe_psql('postgres', q{DROP OWNED BY leaver; DROP ROLE leaver; ALTER ROLE "Old ""Name" RENAME TO "New ""Name"; SELECT jobq.drop_queue('gone', force => true)});
ok($node->poll_query_until('postgres', q{SELECT count(*) = 2 FROM jobq.schedules WHERE state = 'stopped'}), 'two stop');
is($node->safe_psql('postgres', q{SELECT schedule, reason FROM jobq.schedules WHERE state = 'stopped' ORDER BY 1}),
	qq{leaver's|its owner, role "leaver", does not exist\nqueue|queue "gone" does not exist}, 'each with its reason');
is($node->safe_psql('postgres', q{SELECT schedule, count(*) FILTER (WHERE state = 'missed') FROM jobq.schedule_runs WHERE schedule <> 'renamed' GROUP BY 1 ORDER BY 1}), "leaver's|1\nqueue|1", 'and the instant it could not fire');
my $last = $node->safe_psql('postgres', q{SELECT max(run_at) FROM jobq.schedule_runs WHERE schedule = 'renamed'});
ok($node->poll_query_until('postgres', qq{SELECT max(run_at) > '$last'::timestamptz + interval '1 s' FROM jobq.schedule_runs WHERE schedule = 'renamed' AND state = 'enqueued'}), 'the third goes on');
is($node->safe_psql('postgres', q{SELECT owner FROM jobq.schedules WHERE schedule = 'renamed'}), 'New "Name', 'under the new name of its owner');
like($node->safe_psql('postgres', q{SELECT ok, message FROM jobq.health() WHERE check_name = 'schedules'}), qr/^f\|2 of 3 schedules stopped, "leaver's" because: its owner/, 'health() knows');
is(() = slurp_file($node->logfile) =~ /\] jobq manager LOG:  jobq: schedule ".*" stopped: /g, 2, 'a line for each in the log');
$node->safe_psql('postgres', q{SELECT jobq.resume_schedule('leaver''s'), jobq.create_queue('gone'), jobq.resume_schedule('queue')});
ok($node->poll_query_until('postgres', q{SELECT bool_and(state = 'active' AND last_outcome = 'ready') FROM jobq.schedules}), 'resumed, they fire again');
is($node->safe_psql('postgres', q{SELECT owner FROM jobq.schedules WHERE schedule = 'leaver''s'}), getpwuid($<), 'what was nobody\'s is the resumer\'s');
$node->stop;
done_testing();
