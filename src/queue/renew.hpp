// Renewing leases. A lease that expired but was not swept yet is still its worker's.
#pragma once

#include "queue/executors.hpp"

namespace jobq::queue {

// Renews the leases of all attempts that this database's executors have in hand, and has those stop
// that have lost theirs. Whoever brings back what expired does this first: while its executor lives
// a SQL job expires for nobody, however long no manager was there.
void renew_executions();

// The executor that had it in hand is gone: its lease is over.
void expire_now(const Attempt& attempt);

} // namespace jobq::queue
