// The server's clocks. Every instant that jobq stores is the wall clock at the moment of the call,
// never the transaction's start.
#pragma once

#include "core/grace.hpp"

#include "pg/postgres.hpp"

namespace jobq::pg {

inline TimestampTz now() { return GetCurrentTimestamp(); }

inline constexpr TimestampTz kLastInstant = END_TIMESTAMP - 1;

core::ClockReading read_clocks();

// For lengths of time: nobody sets it.
inline core::Microseconds monotonic_now() { return read_clocks().monotonic; }

inline TimestampTz server_start() { return PgStartTime; }

} // namespace jobq::pg
