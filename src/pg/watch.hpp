// When the server last started or its wall clock leapt, kept in shared memory for all sessions:
// made anew at every start and after every crash.
#pragma once

#include "core/grace.hpp"

namespace jobq::pg {

// To be called once, by _PG_init while the server preloads its libraries.
void request_watch();

// One look at the clocks. Never call it during recovery: the first look says since when the
// server accepts writes.
core::Watch look_at_clocks();

} // namespace jobq::pg
