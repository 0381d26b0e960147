
# Everything that makes a job claimable wakes a sleeper, when it is claimable: enqueue, promotion, each kind of retry, resume, the abort of
# whatever had taken it, COPY by hand. As many are woken as there are jobs. Other queues and other databases (case 87) are not.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../wake";
use PostgreSQL::Test::Utils;
use Test::More;
use Wake;

# a lease that was claimed at the server's start is not swept for a while
my $node = wake_server("jobq.sweep_grace = 0\n");
run_checks($node, 'wakes.py');
$node->stop;
done_testing();
