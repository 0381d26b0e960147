
# LISTEN jobq: no producer takes the lock of NOTIFY (case 78); a queue that nobody claims from costs one NOTIFY, a busy one few; names and
# payloads of any size (case 79); other databases hear nothing (case 87).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../wake";
use PostgreSQL::Test::Utils;
use Test::More;
use Wake;

# with places for standbys, of which there is none: a commit that waits for one keeps its locks
my $node = wake_server("wal_level = replica\nmax_wal_senders = 2\n");
run_checks($node, 'notify.py');
$node->stop;
done_testing();
