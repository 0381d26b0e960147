#include "core/grace.hpp"

#include "fuzz/fuzz.hpp"

namespace jobq::core {
namespace {

constexpr Microseconds kThousandYears = 365'000 * kDay;

} // namespace

// A server's life: real time passes, and the wall clock is set now and then.
void hold(Bytes& bytes) {
  const Pick pick = pick_by(bytes);
  ClockReading now = {.wall = pick(1, kThousandYears), .monotonic = pick(0, kThousandYears)};
  Watch watch = observe({}, now);
  EXPECT_EQ(watch.disturbed_at, now.wall);

  while (bytes.remaining_bytes() > 0) {
    const Microseconds passed = pick(0, kDay);
    const Microseconds leap = bytes.ConsumeBool() ? pick(-3 * kSecond, 3 * kSecond) : 0;
    if (now.wall + passed + leap <= 0) return; // earlier than any clock stands
    now = {.wall = now.wall + passed + leap, .monotonic = now.monotonic + passed};

    const Watch before = watch;
    watch = observe(before, now);
    EXPECT_EQ(watch.disturbed_at, leap > kSecond ? now.wall : before.disturbed_at);
    EXPECT_EQ(observe(watch, now).disturbed_at, watch.disturbed_at);
  }
}

} // namespace jobq::core
