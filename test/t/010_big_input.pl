
# Sizes: an error text of 100 MB, a payload and a result of 10 MB, a batch of 100,000, numbers beyond 2^53 (cases 54, 79, 156, 159).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => [ '-E', 'UTF8', '--locale=C' ]);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'\nlog_statement = none\nautovacuum = off");
$node->start;
$node->safe_psql('postgres', q{CREATE EXTENSION jobq; SELECT jobq.create_queue('q', keep_dead => '1000 years')});

# 64 kB are an even number, the text has an odd byte in front: a cut after 65536 bytes would fall into a letter
is($node->safe_psql('postgres', q{
	SELECT jobq.enqueue('fails', queue => 'q', max_attempts => 1) > 0;
	SELECT jobq.fail(job_id, attempt, 'x' || repeat(convert_from('\xc3a4', 'UTF8'), 50000000)) FROM jobq.claim('q');
	SELECT octet_length(error), error = 'x' || repeat(convert_from('\xc3a4', 'UTF8'), 32767) FROM jobq.failures;
	SELECT octet_length(last_error) FROM jobq.dead_jobs}), "t\ndead\n65535|t\n65535", 'an error text of 100 MB is cut to 64 kB at a letter\'s border');

is($node->safe_psql('postgres', q{
	SELECT jobq.enqueue('big', jsonb_build_object('p', repeat('0123456789abcde"', 655360)), queue => 'q') > 0;
	SELECT length(payload ->> 'p'), jobq.complete(job_id, attempt, jsonb_build_object('r', repeat('x', 10485760)))
	FROM jobq.claim('q') WHERE payload ->> 'p' = repeat('0123456789abcde"', 655360);
	SELECT length(result ->> 'r') FROM jobq.history WHERE task = 'big'}), "t\n10485760|t\n10485760", 'a payload and a result of 10 MB');

is($node->safe_psql('postgres', q{
	CREATE TABLE made AS SELECT row_number() OVER () AS n, job_id
	FROM jobq.enqueue_batch('batch', (SELECT jsonb_agg(i ORDER BY i) FROM generate_series(1, 100000) i), queue => 'q') AS job_id;
	SELECT count(*), count(DISTINCT job_id) FROM made;
	SELECT count(*) FROM made JOIN jobq.job USING (job_id) WHERE payload = to_jsonb(n);
	SELECT bool_and(payload = to_jsonb(n)) FROM (SELECT payload, row_number() OVER () AS n FROM jobq.claim('q', 10000)) c}),
	"100000|100000\n100000\nt", 'a batch of 100,000: ids in its order, claimed in its order');
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM jobq.complete_batch((SELECT array_agg(job_id) FROM jobq.lease), (SELECT array_agg(attempt) FROM jobq.lease));
	SELECT jobq.purge_queue('q')}), "10000\n90000", '10,000 completed at once, 90,000 purged');

# every sequence far on, a whole life there
for my $number ('2147483653', '9007199254740993', '4611686018427387904')
{
	is($node->safe_psql('postgres', qq{
		SELECT count(setval(c.oid, $number)) > 0 FROM pg_class c WHERE relnamespace = 'jobq'::regnamespace AND relkind = 'S';
		SELECT jobq.create_queue('at $number', retry_base => '0');
		SELECT jobq.enqueue('a', queue => 'at $number', job_key => 'k') > $number;
		SELECT job_id > $number, jobq.fail(job_id, attempt, 'no') FROM jobq.claim('at $number');
		CREATE TEMP TABLE held AS SELECT * FROM jobq.claim('at $number');
		SELECT attempt, jobq.renew(job_id, attempt) IS NOT NULL FROM held;
		SELECT jobq.complete_batch(array[job_id], array[attempt]) = job_id FROM held}),
		"t\nt\nt\nt|ready\n2|t\nt", "ids from $number on");
}
is($node->safe_psql('postgres', q{SELECT relname FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid
	WHERE relnamespace = 'jobq'::regnamespace AND (seqtypid <> 'bigint'::regtype OR seqcycle)}), '', 'every sequence is bigint and ends instead of beginning again');

$node->stop;
done_testing();
