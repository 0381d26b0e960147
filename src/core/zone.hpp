// A time zone, as a function that knows its rules.
#pragma once

#include <functional>

#include "core/calendar.hpp"

namespace jobq::core {

// At an instant the zone's clock shows UTC + offset, and goes on doing so until `until` (excluded).
struct Stretch {
  Seconds offset = 0;
  Seconds until = 0; // kNever: for ever
};

inline constexpr Seconds kNever = 1'000'000'000'000'000; // beyond all calendars

// The instant is in seconds since 2000-01-01 00:00:00 UTC. No offset is longer than a day, and
// local time leaps by no more than a day.
using Zone = std::function<Stretch(Seconds instant)>;

} // namespace jobq::core
