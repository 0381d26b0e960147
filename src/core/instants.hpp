// When a schedule is due: the instants of its timetable, one after the other.
//
// Daylight saving. If the hour field is * or */n, an entry is due at every instant whose local time
// matches: never in a gap, in both passes of a repeated hour. Any other hour field names a time on
// the clock: in a gap it is due at the first instant after it, in a repeated hour in the first pass
// only; what falls on one instant is one. Intervals keep their cadence.
#pragma once

#include <optional>

#include "core/duration.hpp"
#include "core/timetable.hpp"
#include "core/zone.hpp"

namespace jobq::core {

// All instants in microseconds since 2000-01-01 00:00:00 UTC.
struct Rule {
  Timetable timetable;
  Zone zone = {};                             // of cron
  Microseconds phase = 0;                     // of an interval: the grid on which its instants lie
  std::optional<Microseconds> starts_at = {}; // none before it
  std::optional<Microseconds> ends_at = {};   // none after it
  Microseconds last = kForever;               // none after it either: the calendar's end
};

// The first instant after `instant`; nothing if there is none. Of @reboot there never is one.
std::optional<Microseconds> next_after(const Rule& rule, Microseconds instant);

} // namespace jobq::core
