
# Workers that only wait, or only LISTEN, claim everything that is made, in many rounds: while workers are killed, while the server dies (case
# 86), after a silence (case 81), in SERIALIZABLE. Case 84: producers stop at once after a burst, and nobody polls.
# By hand: JOBQ_ROUNDS=100 JOBQ_RESTARTS=20 JOBQ_SILENCE=120; JOBQ_SEED repeats a run's choices.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../wake";
use PostgreSQL::Test::Utils;
use Test::More;
use Wake;

my $rounds = $ENV{JOBQ_ROUNDS} || 15;
my $restarts = $ENV{JOBQ_RESTARTS} || 3;
my $silence = $ENV{JOBQ_SILENCE} || 3;

my $node = wake_server();
run_checks($node, 'rounds.py', 'wait', '--rounds', $rounds, '--silence', 1);
run_checks($node, 'rounds.py', 'wait', '--rounds', $rounds, '--kill');
run_checks($node, 'rounds.py', 'wait', '--rounds', $rounds, '--isolation', 'serializable');
run_checks($node, 'rounds.py', 'busy', '--rounds', 2 * $rounds, '--kill');
run_checks($node, 'rounds.py', 'wait', '--rounds', $restarts, '--restart');
run_checks($node, 'rounds.py', 'listen', '--rounds', $rounds, '--silence', $silence);
run_checks($node, 'rounds.py', 'listen', '--rounds', $rounds, '--isolation', 'serializable');
run_checks($node, 'rounds.py', 'listen', '--rounds', $restarts, '--restart');
$node->stop;
done_testing();
