#include "core/grace.hpp"

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr Microseconds kNoon = 1000 * kHour;

ClockReading at(Microseconds wall, Microseconds monotonic) {
  return {.wall = wall, .monotonic = monotonic};
}

TEST(Grace, FirstLookIsTheStart) {
  Watch watch = observe({}, at(kNoon, kHour));
  EXPECT_EQ(watch.disturbed_at, kNoon);
}

TEST(Grace, ClocksInStepDisturbNothing) {
  Watch watch = observe({}, at(kNoon, kHour));
  for (int look = 1; look < 1000; ++look)
    watch = observe(watch, at(kNoon + look * kHour, kHour + look * kHour));
  EXPECT_EQ(watch.disturbed_at, kNoon);
}

TEST(Grace, WallClockThatRunsAheadIsADisturbance) {
  Watch watch = observe({}, at(kNoon, kHour));
  watch = observe(watch, at(kNoon + 3 * kHour, 2 * kHour));
  EXPECT_EQ(watch.disturbed_at, kNoon + 3 * kHour);
  watch = observe(watch, at(kNoon + 4 * kHour, 3 * kHour));
  EXPECT_EQ(watch.disturbed_at, kNoon + 3 * kHour);
}

TEST(Grace, ASecondIsForgiven) {
  Watch watch = observe({}, at(kNoon, kHour));
  watch = observe(watch, at(kNoon + kSecond, kHour));
  EXPECT_EQ(watch.disturbed_at, kNoon);
  watch = observe(watch, at(kNoon + 2 * kSecond + 1, kHour));
  EXPECT_EQ(watch.disturbed_at, kNoon + 2 * kSecond + 1);
}

TEST(Grace, WallClockThatFallsBackDisturbsNothingButItsReturnDoes) {
  Watch watch = observe({}, at(kNoon, kHour));
  watch = observe(watch, at(kNoon - kHour, 2 * kHour));
  EXPECT_EQ(watch.disturbed_at, kNoon);
  watch = observe(watch, at(kNoon + 2 * kHour, 3 * kHour));
  EXPECT_EQ(watch.disturbed_at, kNoon + 2 * kHour);
}

} // namespace
} // namespace jobq::core
