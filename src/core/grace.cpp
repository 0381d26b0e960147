#include "core/grace.hpp"

#include <algorithm>

#include "core/pure.hpp"

namespace jobq::core {

Watch observe(const Watch& watch, const ClockReading& now) {
  Watch seen = watch;
  seen.is_on = true;
  seen.offset = now.wall - now.monotonic;
  // Since the last look, the clock went on before it fell.
  if (watch.is_on) seen.furthest = std::max(watch.furthest, now.monotonic + watch.offset);
  seen.furthest = std::max(seen.furthest, now.wall);
  if (watch.is_on && seen.offset - watch.offset <= kSecond) return seen;
  seen.disturbed_at = now.monotonic;
  seen.before = seen.furthest;
  return seen;
}

} // namespace jobq::core
