// A lease must not expire because the server was away. Leases taken before the server began to
// accept writes, or before its wall clock leapt ahead, get time to be renewed first.
#pragma once

#include "core/duration.hpp"

namespace jobq::core {

struct ClockReading {
  Microseconds wall = 0;
  Microseconds monotonic = 0;
};

// Held in shared memory, all zero at the server's start.
struct Watch {
  Microseconds disturbed_at = 0; // wall clock at the last start or leap; 0: not yet observed
  Microseconds offset = 0;       // wall - monotonic, as last observed
};

// The watch after one more look at the clocks. The first look is the server's start; a wall clock
// that gained more than a second on the monotonic one leapt. One that fell back disturbs nothing.
Watch observe(const Watch& watch, const ClockReading& now);

} // namespace jobq::core
