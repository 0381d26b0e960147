#include "core/grace.hpp"

#include <algorithm>

#include "fuzz/fuzz.hpp"

namespace jobq::core {
namespace {

constexpr Microseconds kThousandYears = 365'000 * kDay;

} // namespace

// A server's life: real time passes, and the wall clock is set now and then. Leases are taken,
// after a look, at its instants.
void hold(Bytes& bytes) {
  const Pick pick = pick_by(bytes);
  ClockReading now = {.wall = pick(1, kThousandYears), .monotonic = pick(0, kThousandYears)};
  Watch watch = observe({}, now);
  EXPECT_EQ(watch.disturbed_at, now.monotonic);
  Microseconds latest = now.wall; // instant that any lease bears

  while (bytes.remaining_bytes() > 0) {
    const Microseconds passed = pick(0, kDay);
    const Microseconds leap = bytes.ConsumeBool() ? pick(-3 * kSecond, 3 * kSecond) : 0;
    if (now.wall + passed + leap <= 0) return; // earlier than any clock stands
    now = {.wall = now.wall + passed + leap, .monotonic = now.monotonic + passed};

    const Watch before = watch;
    watch = observe(before, now);
    const bool is_disturbed = leap > kSecond;
    EXPECT_EQ(watch.disturbed_at, is_disturbed ? now.monotonic : before.disturbed_at);
    if (is_disturbed) EXPECT_GE(watch.before, latest);
    EXPECT_EQ(observe(watch, now).disturbed_at, watch.disturbed_at);
    latest = std::max(latest, now.wall);
  }
}

} // namespace jobq::core
