
# jobq.enabled by a reload: off, the managers leave and nothing is promoted, swept or pruned; on, they come back and do it. The other
# settings of the configuration file count from the reload on too. Who creates the extension where nothing will run is warned (case 177).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\nmax_prepared_transactions = 2");
$node->start;

sub managed { my ($list, $what) = @_; ok($node->poll_query_until('postgres', "SELECT coalesce(string_agg(datname, ' ' ORDER BY datname), '') FROM pg_stat_activity WHERE backend_type = 'jobq manager'", $list), $what); return }
sub set { $node->append_conf('postgresql.conf', $_[0]); $node->reload; return }

for my $name (qw(one two))
{
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	my ($code, $out, $err) = $node->psql($name, 'CREATE EXTENSION jobq');
	is("$code$err", '0', "CREATE EXTENSION in $name says nothing");
}
managed('one two', 'each has its manager');
my $launcher = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq launcher'");

set('jobq.enabled = off');
managed('', 'off: the managers leave');
$node->safe_psql('one', q{
	SELECT jobq.create_queue('q', max_crashes => 1, keep_completed => '1 ms');
	SELECT jobq.enqueue(t, queue => 'q') FROM unnest('{expired,finished}'::text[]) t;
	SELECT count(*) FROM jobq.claim('q', 2);
	SELECT jobq.complete(job_id, attempt) FROM jobq.jobs WHERE task = 'finished';
	UPDATE jobq.lease SET expires_at = clock_timestamp();
	SELECT jobq.enqueue('due', queue => 'q', delay => '1 ms');
});
my ($code, $out, $err) = $node->psql('postgres', 'CREATE EXTENSION jobq');
like("$code $err", qr/^0 .*WARNING:  no jobq manager will look after this database: jobq.enabled is off.*HINT:.*jobq\.health/s, 'off: CREATE EXTENSION warns');
is($node->safe_psql('one', "SELECT ok, message FROM jobq.health() WHERE check_name = 'manager'"),
	'f|no manager looks after this database: jobq.enabled is off', 'off: health() says so');
$node->safe_psql('postgres', 'CREATE DATABASE three');

# What would have been done long ago if anybody did it: a manager does it within a few ms, and the launcher is woken by all of these.
kill 'HUP', $launcher;
my $state = "SELECT (SELECT count(*) FROM jobq.delayed), (SELECT count(*) FROM jobq.lease), (SELECT count(*) FROM jobq.history)";
my $until = time + 3;
my $changed = 0;
while (time < $until)
{
	$changed++ if $node->safe_psql('one', $state) ne '1|1|1';
	$changed++ if $node->safe_psql('one', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq manager'") ne '0';
	select(undef, undef, undef, 0.2);
}
is($changed, 0, 'off: nobody comes, nothing is promoted, swept or pruned');

set("jobq.sweep_grace = '0'\njobq.enabled = on");
managed('one postgres two', 'on: they come back, and to the database whose extension was made meanwhile');
ok($node->poll_query_until('one', 'SELECT (SELECT count(*) FROM jobq.delayed) = 0 AND (SELECT count(*) FROM jobq.lease) = 0'), 'on: what was due is promoted and swept');
ok($node->poll_query_until('one', "SELECT string_agg(task, ' ') = 'expired' FROM jobq.history"), 'and pruned');
is($node->safe_psql('one', "SELECT ok FROM jobq.health() WHERE check_name = 'manager'"), 't', 'on: health() is content');
is($node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'jobq launcher'"), $launcher, 'the launcher was there all the time');
($code, $out, $err) = $node->psql('three', 'CREATE EXTENSION jobq');
is("$code$err", '0', 'on: CREATE EXTENSION says nothing');

# A restart while it is off; a session's own word does not count.
set('jobq.enabled = off');
$node->restart;
($code, $out, $err) = $node->psql('one', 'SET jobq.enabled = on');
like($err, qr/cannot be changed now/, 'a session cannot switch it on');
is($node->safe_psql('one', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'jobq manager'"), '0', 'off after a restart');
set('jobq.enabled = on');
managed('one postgres three two', 'on without a restart');

# Of a COMMIT PREPARED nobody is told: the launcher finds the extension at its next look, whose time may be set to sooner.
$node->safe_psql('postgres', 'CREATE DATABASE prepared');
$node->safe_psql('prepared', "BEGIN; CREATE EXTENSION jobq; PREPARE TRANSACTION 'p'");
$node->safe_psql('prepared', "COMMIT PREPARED 'p'");
set("jobq.database_scan_interval = '1 s'");
managed('one postgres prepared three two', 'jobq.database_scan_interval counts from the reload on');

# A row that is due and locked is looked at again after jobq.sweep_interval.
set("jobq.sweep_interval = '1 min'");
my $session = $node->background_psql('one');
my $job = $node->safe_psql('one', "SELECT jobq.enqueue('due', queue => 'q', delay => '100 ms')");
$session->query_safe("BEGIN; SELECT job_id FROM jobq.delayed WHERE job_id = $job FOR UPDATE");
is($node->safe_psql('one', 'SELECT clock_timestamp() > run_at FROM jobq.delayed, pg_sleep(0.2)'), 't', 'a row is due while somebody has it');
$session->query_safe('COMMIT');
set("jobq.sweep_interval = '20 ms'");
ok($node->poll_query_until('one', 'SELECT count(*) = 0 FROM jobq.delayed'), 'jobq.sweep_interval counts from the reload on');
$session->quit;

$node->stop;
done_testing();
