#include "core/grace.hpp"

#include "core/pure.hpp"

namespace jobq::core {

Watch observe(const Watch& watch, const ClockReading& now) {
  Microseconds offset = now.wall - now.monotonic;
  bool started = watch.disturbed_at == 0;
  bool leapt = !started && offset - watch.offset > kSecond;
  return {.disturbed_at = started || leapt ? now.wall : watch.disturbed_at, .offset = offset};
}

} // namespace jobq::core
