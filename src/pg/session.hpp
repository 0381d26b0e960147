// Who this process is to the server, and how many there may be.
#pragma once

#include <cstdint>

#include "pg/compat.hpp"

namespace jobq::pg {

inline std::uint32_t my_database() { return MyDatabaseId; }
inline int my_process_id() { return MyProcPid; }

// The cluster that this server runs; a standby or a base backup has its primary's.
inline std::int64_t system_identifier() { return static_cast<std::int64_t>(GetSystemIdentifier()); }

// Among all that use shared memory, from 0: its own until it exits.
inline int my_process() { return process_number(); }

// The server's limits, known once it asks for the size of shared memory. Auxiliary processes and
// prepared transactions have numbers as well, above the sessions' and workers'.
inline int most_processes() { return MaxBackends; }
inline int most_workers() { return max_worker_processes; }

} // namespace jobq::pg
