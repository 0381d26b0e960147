
# A server that was down for longer than the leases, and a standby that takes over, expire nobody who is still there: workers renew within
# the grace and nothing is written about them. A lease that really was abandoned is one failure, after the grace, by the manager, which
# comes by itself; on a standby there is none (promise 4, cases 27, 136).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $grace = 8; # what the workers have to renew after the restart and the promotion

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', qq{
shared_preload_libraries = 'jobq'
jobq.sweep_grace = '${grace}s'
log_line_prefix = '%m [%p] %b '
log_statement = none
});
$primary->start;
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', lease => '4 s', retry_base => '1 h', max_crashes => 10);
	SELECT count(jobq.enqueue(t, queue => 'q')) FROM unnest('{held,held too,abandoned}'::text[]) t;
});
$primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'jobq manager'}) or die 'no manager on the primary';
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ '^jobq'}), '0', 'no process of jobq on the standby');
$primary->safe_psql('postgres', q{
	SELECT count(jobq.enqueue('due', queue => 'q', delay => '4 s'));
	CREATE TABLE held AS SELECT * FROM jobq.claim('q', 3);
});
$primary->wait_for_catchup($standby);
$primary->stop('immediate');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM held'), '3', 'three leases');

# Down until the leases are past.
ok($standby->poll_query_until('postgres', q{SELECT clock_timestamp() > max(expires_at) + interval '0.5 s' FROM jobq.lease}), 'all leases are past their end');
is($standby->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ '^jobq'}), '0', 'still no process of jobq on the standby');
my $log = slurp_file($standby->logfile);
unlike($log, qr/\] jobq|jobq (launcher|manager)/, 'and no word of one in its log');
my $end_of_standby = length $log;

# Both go on, each with its copy of the queue.
$primary->start;
$standby->promote;
my @servers = ($primary, $standby);
for my $server (@servers)
{
	my $name = $server->name;
	is($server->safe_psql('postgres', q{SELECT count(*) FROM jobq.failures}), '0', "$name: nobody has expired");
	is($server->safe_psql('postgres', q{SELECT count(*), bool_and(jobq.renew(job_id, attempt, lease => '1 h') > clock_timestamp() + interval '50 min') FROM held WHERE task LIKE 'held%'}),
		'2|t', "$name: the workers renew");
}
for my $server (@servers)
{
	my $name = $server->name;
	ok($server->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'jobq manager'}), "$name: a manager has come");
	ok($server->poll_query_until('postgres', q{SELECT count(*) = 1 FROM jobq.jobs WHERE task = 'due' AND state = 'ready'}), "$name: what was due is ready");
	ok($server->poll_query_until('postgres', q{SELECT count(*) > 0 FROM jobq.failures}), "$name: the abandoned lease is noticed");
	is($server->safe_psql('postgres', q{SELECT task, f.attempt, kind FROM jobq.failures f JOIN jobq.job USING (job_id)}), 'abandoned|1|expired', "$name: as one failure");
	is($server->safe_psql('postgres', q{SELECT state, attempt, crashes FROM jobq.jobs WHERE task = 'abandoned'}), 'delayed|1|1', "$name: to be tried again");
}
is($primary->safe_psql('postgres', "SELECT min(failed_at) >= pg_postmaster_start_time() + interval '$grace s' FROM jobq.failures"), 't', 'primary: not before the grace was over');
my ($promoted) = slurp_file($standby->logfile, $end_of_standby) =~ /^(\S+ \S+ \S+) \[\d+\] \S* LOG:  received promote request/m;
ok($promoted, 'standby: the log has the promotion');
is($standby->safe_psql('postgres', "SELECT min(failed_at) >= '$promoted'::timestamptz + interval '$grace s' FROM jobq.failures"), 't', 'standby: not before the grace was over');
for my $server (@servers)
{
	my $name = $server->name;
	is($server->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE jobq.complete(job_id, attempt)) FROM held}), '2', "$name: the workers complete, the late one does not");
	is($server->safe_psql('postgres', q{SELECT count(*) FROM jobq.failures}), '1', "$name: and that was all");
	my @noise = grep { /\] jobq \w+ (ERROR|FATAL|WARNING|PANIC)|"jobq|manager: cannot/ } split /\n/, slurp_file($server->logfile);
	is_deeply(\@noise, [], "$name: nothing in the log of jobq");
	$server->stop;
}
done_testing();
