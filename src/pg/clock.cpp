#include "pg/clock.hpp"

#include <ctime>

namespace jobq::pg {

core::ClockReading read_clocks() {
  timespec monotonic{};
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  return {.wall = now(), .monotonic = monotonic.tv_sec * core::kSecond + monotonic.tv_nsec / 1000};
}

} // namespace jobq::pg
