// Sleeping on the process's latch, and waking others by theirs.
#pragma once

#include "core/duration.hpp"

namespace jobq::pg {

// Sleeps until the latch is set, or so long at the most (rounded up to milliseconds); then handles
// what has come in: raises if the session is cancelled or terminated. The postmaster's death ends
// the process. `reason` is shown in pg_stat_activity from 17 on.
void sleep(core::Microseconds longest, const char* reason);

// Sets the latch of a process by its number (shared_memory). A process that has taken its place
// since wakes for nothing. Raises nothing.
void wake_process(int process);

// Ends the session (FATAL) if its client has gone. A process without a client stays.
void require_client();

} // namespace jobq::pg
