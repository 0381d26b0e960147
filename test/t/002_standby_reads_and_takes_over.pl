
# On a standby every writing function stops with 25006 and the views answer. After promotion the functions work, an open lease is still
# its worker's, and nobody is expired by the promotion itself: not before sweep_grace or a third of the lease has passed.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nmax_connections = 20");
# Its manager would sweep the lease that is to be found expired at the promotion.
$primary->append_conf('postgresql.conf', 'jobq.enabled = off');
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION jobq;
	SELECT jobq.create_queue('q', lease => '1 s', retry_base => '0', max_crashes => 10);
	SELECT jobq.create_queue('long', lease => '24 h', retry_base => '0');
	SELECT jobq.enqueue(t, queue => 'q') FROM unnest('{held,expired,ready}'::text[]) t;
	SELECT jobq.enqueue('later', queue => 'q', delay => '1 h');
	SELECT jobq.enqueue('long', queue => 'long');
	CREATE TABLE held AS SELECT * FROM jobq.claim('q', 2);
	INSERT INTO held SELECT * FROM jobq.claim('long');
	UPDATE jobq.lease SET expires_at = clock_timestamp() + interval '1 h' WHERE job_id = (SELECT job_id FROM held WHERE task = 'held');
	UPDATE jobq.lease SET expires_at = clock_timestamp() - interval '1 h' WHERE job_id IN (SELECT job_id FROM held WHERE task IN ('expired', 'long'));
	CREATE FUNCTION public.state_of(command text) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE command;
		RETURN 'none';
	EXCEPTION WHEN OTHERS THEN
		RETURN SQLSTATE;
	END $$;
});
$primary->backup('base');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'jobq.enabled = on');
$standby->start;
$primary->wait_for_catchup($standby);

my $read_only = q{('queue_counts', 'lane_states', 'health', 'next_runs')};
my $calls = qq{
	SELECT p.proname, format('SELECT * FROM %s(%s)', p.oid::regproc,
		(SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n) FROM unnest(proargtypes) WITH ORDINALITY AS a(t, n))) AS command
	FROM pg_proc p
	WHERE pronamespace = 'jobq'::regnamespace AND prokind <> 'p' AND proname NOT IN $read_only AND has_function_privilege('jobq_admin', oid, 'EXECUTE')
	  AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
};
my $number = $standby->safe_psql('postgres', "SELECT count(*) FROM ($calls) c");
cmp_ok($number, '>=', 20, 'there are functions to try');
is($standby->safe_psql('postgres', "SELECT proname, s FROM ($calls) c, public.state_of(c.command) s WHERE s <> '25006'"),
	'', "each of the $number writing functions stops with 25006, before it looks at its arguments");
for my $call ("wait('q', '1 s')", "wait_any('{q}', '1 s')", 'wait(NULL, NULL)')
{
	my ($code, $out, $err) = $standby->psql('postgres', "\\set VERBOSITY verbose\nCALL jobq.$call");
	like($err, qr/ERROR:  25006: /, "and so does $call");
}
is($standby->safe_psql('postgres', "SELECT public.state_of(\$\$SELECT jobq.enqueue('a')\$\$), public.state_of(\$\$SELECT * FROM jobq.claim('q')\$\$)"),
	'25006|25006', 'and so with good arguments');
is($standby->safe_psql('postgres', "SELECT string_agg(state || ' ' || task, ', ' ORDER BY state, task) FROM jobq.jobs"),
	'delayed later, ready ready, running expired, running held, running long', 'the view jobs answers');
for my $view (qw(history dead_jobs failures queues workers lanes))
{
	is($standby->safe_psql('postgres', "SELECT count(*) >= 0 FROM jobq.$view"), 't', "the view $view answers");
}
is($standby->safe_psql('postgres', "SELECT ready, running FROM jobq.queue_counts('q', exact => true)"), '1|2', 'queue_counts answers');
is($standby->safe_psql('postgres', "SELECT count(*) FROM jobq.queue_counts()"), '2', 'and with the statistics only');

$primary->stop;
$standby->promote;

is($standby->safe_psql('postgres', 'SELECT retried + died FROM jobq.sweep()'), '0', 'nobody is expired by the promotion');
is($standby->safe_psql('postgres', "SELECT task FROM jobq.claim('q')"), 'ready', 'a claim works');
is($standby->safe_psql('postgres', "SELECT count(*) FROM jobq.claim('q', 10)"), '0', 'what was leased before is still leased');
is($standby->safe_psql('postgres', "SELECT jobq.renew(job_id, attempt) IS NOT NULL, jobq.complete(job_id, attempt) FROM held WHERE task = 'held'"),
	't|t', 'the worker of an open lease goes on');
is($standby->safe_psql('postgres', "SELECT jobq.enqueue('more', queue => 'q') > (SELECT max(job_id) FROM held)"), 't', 'ids go on');

# The end of the grace, without waiting for thirty seconds.
$standby->append_conf('postgresql.conf', "jobq.sweep_grace = '2s'");
$standby->reload;
ok($standby->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM jobq.jobs WHERE task = 'expired' AND state = 'ready')"),
	'after the grace the expired lease is swept, by the manager');
is($standby->safe_psql('postgres', "SELECT state FROM jobq.jobs WHERE task = 'long'"), 'running', 'a long lease has a third of its length');
$standby->stop;
done_testing();
