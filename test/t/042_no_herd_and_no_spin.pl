
# Fifty sleepers and one job: one comes. A sleeper takes no processor time while its queue is paused, or while others have all of its jobs.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../wake";
use PostgreSQL::Test::Utils;
use Test::More;
use Wake;

my $node = wake_server();
run_checks($node, 'herd.py');
$node->stop;
done_testing();
