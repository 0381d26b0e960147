
# Other encodings of the database (case 154): what the database can hold comes back unchanged, what it cannot is refused at enqueue with a
# clear error, an error text always ends its attempt and is cut at the border of a character.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'jobq'");
$node->start;

# A long text of letters of one, two or three bytes, and how much of it fits into 64 kB behind two bytes (one, for EUC_JP): the last letter does
# not fit whole.
my %filler = (
	UTF8 => 'convert_from(decode(repeat(\'e282ac\', 40000), \'hex\'), \'UTF8\')',
	LATIN1 => 'repeat(chr(233), 100000)',
	SQL_ASCII => 'convert_from(decode(repeat(\'c3\', 100000), \'hex\'), \'SQL_ASCII\')',
	EUC_JP => 'convert_from(decode(repeat(\'a4a2\', 60000), \'hex\'), \'EUC_JP\')',
);
my %head = (UTF8 => 'xx', LATIN1 => 'xx', SQL_ASCII => 'xx', EUC_JP => 'x');
my %longest = (UTF8 => 65534, LATIN1 => 65536, SQL_ASCII => 65536, EUC_JP => 65535);

for my $encoding (sort keys %filler)
{
	my $name = lc "in_$encoding";
	$node->safe_psql('postgres', "CREATE DATABASE $name ENCODING '$encoding' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
	$node->safe_psql($name, q{
		CREATE EXTENSION jobq;
		SELECT jobq.create_queue('q');
		CREATE FUNCTION public.attempt(command text, OUT state text, OUT message text) LANGUAGE plpgsql AS $$
		BEGIN
			EXECUTE command;
			state := 'none';
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
		END $$;
	});

	# text and json that the encoding has
	my $text = $filler{$encoding} =~ s/\d{5,}/3/r;
	is($node->safe_psql($name, qq{
		SELECT jobq.create_queue('queue ' || $text);
		SELECT jobq.enqueue('task ' || $text, to_jsonb($text), queue => 'queue ' || $text, group_key => $text, job_key => $text, headers => to_jsonb($text)) > 0;
		SELECT task = 'task ' || $text, payload #>> '{}' = $text, queue = 'queue ' || $text, group_key = $text, headers #>> '{}' = $text,
			jobq.complete(job_id, attempt, to_jsonb($text))
		FROM jobq.claim('queue ' || $text);
		SELECT result #>> '{}' = $text FROM jobq.history}), "t\nt\nt|t|t|t|t|t\nt", "$encoding: its own letters come back");

	# a name's limit is bytes, and whoever counts letters would let this through
	is($node->safe_psql($name, qq{SELECT state FROM public.attempt(\$\$SELECT jobq.enqueue(left($filler{$encoding}, 64), queue => 'q')\$\$)}),
		'42622', "$encoding: a task of 64 letters is too long");

	# what jsonb cannot hold never gets in
	is($node->safe_psql($name, q{SELECT state FROM public.attempt($$SELECT jobq.enqueue('a', '{"a": "\u0000"}', queue => 'q')$$)}), '22P05', "$encoding: a zero character is refused");
	is($node->safe_psql($name, q{SELECT state FROM public.attempt($$SELECT jobq.enqueue('a', '{"a": "\ud800"}', queue => 'q')$$)}), '22P02', "$encoding: half a surrogate pair is refused");
	if ($encoding eq 'LATIN1')
	{
		is($node->safe_psql($name, q{SELECT state FROM public.attempt($$SELECT jobq.enqueue('a', '{"a": "\u20ac"}', queue => 'q')$$)}), '22P05', "$encoding: a letter that it has not is refused");
	}

	# an error text: as it is, or cut; the attempt has ended in either case
	is($node->safe_psql($name, qq{
		SELECT jobq.enqueue('fails', queue => 'q', max_attempts => 2) > 0;
		SELECT jobq.fail(job_id, attempt, $text, retry_in => '0') FROM jobq.claim('q');
		SELECT last_error = $text, jobq.fail(job_id, attempt, '$head{$encoding}' || $filler{$encoding}) FROM jobq.claim('q')}),
		"t\nready\nt|dead", "$encoding: the error text is given to the next attempt");
	is($node->safe_psql($name, qq{
		SELECT octet_length(error), '$head{$encoding}' || $filler{$encoding} LIKE error || '%' FROM jobq.failures WHERE attempt = 2}),
		"$longest{$encoding}|t", "$encoding: a long one is cut at a letter's border");
	is($node->safe_psql($name, 'SELECT octet_length(convert_to(error, getdatabaseencoding())) > 0 FROM jobq.failures WHERE attempt = 2'), 't', "$encoding: and can be read");
}

# SQL_ASCII takes bytes that no encoding knows: they must not stop the end of an attempt
is($node->safe_psql('in_sql_ascii', q{
	SELECT jobq.enqueue('bytes', queue => 'q') > 0;
	SELECT jobq.fail(job_id, attempt, E'\xC3\xFF', retry => false) FROM jobq.claim('q');
	SELECT octet_length(error) FROM jobq.failures WHERE attempt = 1 AND job_id = (SELECT max(job_id) FROM jobq.job)}), "t\ndead\n2", 'SQL_ASCII: bytes of no encoding are kept');

$node->stop;
done_testing();
