// A lease must not expire because the server was away. Leases taken before the server began to
// accept writes, or before its wall clock leapt ahead, get time to be renewed first.
//
// When they were taken is known by the wall clock alone, which may have fallen back since: what was
// taken before may bear a later instant than what came after. So whoever may have been taken before
// gets the time, which is measured by the monotonic clock.
#pragma once

#include "core/duration.hpp"

namespace jobq::core {

struct ClockReading {
  Microseconds wall = 0;
  Microseconds monotonic = 0;
};

// Held in shared memory, all zero at the server's start.
struct Watch {
  bool is_on = false;
  Microseconds disturbed_at = 0; // the monotonic clock at the last start or leap
  Microseconds before = 0;       // what was taken before that bears no later instant
  Microseconds furthest = 0;     // that the wall clock has been, as far as it was observed
  Microseconds offset = 0;       // wall - monotonic, as last observed
};

// The watch after one more look at the clocks. The first look is the server's start; a wall clock
// that gained more than a second on the monotonic one leapt. One that fell back disturbs nothing.
// Whoever sets the instant at which a lease expires looks first, so that a leap after it is seen.
Watch observe(const Watch& watch, const ClockReading& now);

} // namespace jobq::core
