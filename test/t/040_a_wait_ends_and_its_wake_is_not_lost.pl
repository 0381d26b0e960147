
# However a wait ends (cancelled, terminated, out of time, without a client) and wherever it is then (asleep, just woken, in its look, told and
# not yet claiming): the session is as before, the next sleeper gets the wake. A sleeper holds no snapshot and no old transaction.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../wake";
use PostgreSQL::Test::Utils;
use Test::More;
use Wake;

my $node = wake_server();
run_checks($node, 'endings.py');
$node->stop;
done_testing();
