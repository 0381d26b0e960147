#include "core/grace.hpp"

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr Microseconds kNoon = 1000 * kHour;
constexpr Microseconds kMinute = 60 * kSecond;

ClockReading at(Microseconds wall, Microseconds monotonic) {
  return {.wall = wall, .monotonic = monotonic};
}

TEST(Grace, FirstLookIsTheStart) {
  Watch watch = observe({}, at(kNoon, kHour));
  EXPECT_TRUE(watch.is_on);
  EXPECT_EQ(watch.disturbed_at, kHour);
  EXPECT_EQ(watch.before, kNoon);
}

TEST(Grace, ClocksInStepDisturbNothing) {
  Watch watch = observe({}, at(kNoon, kHour));
  for (int look = 1; look < 1000; ++look)
    watch = observe(watch, at(kNoon + look * kHour, kHour + look * kHour));
  EXPECT_EQ(watch.disturbed_at, kHour);
  EXPECT_EQ(watch.before, kNoon);
}

TEST(Grace, WallClockThatRunsAheadIsADisturbance) {
  Watch watch = observe({}, at(kNoon, kHour));
  watch = observe(watch, at(kNoon + 3 * kHour, 2 * kHour));
  EXPECT_EQ(watch.disturbed_at, 2 * kHour);
  EXPECT_EQ(watch.before, kNoon + 3 * kHour);
  watch = observe(watch, at(kNoon + 4 * kHour, 3 * kHour));
  EXPECT_EQ(watch.disturbed_at, 2 * kHour);
}

TEST(Grace, ASecondIsForgiven) {
  Watch watch = observe({}, at(kNoon, kHour));
  watch = observe(watch, at(kNoon + kSecond, kHour));
  EXPECT_EQ(watch.before, kNoon);
  watch = observe(watch, at(kNoon + 2 * kSecond + 1, kHour));
  EXPECT_EQ(watch.before, kNoon + 2 * kSecond + 1);
}

TEST(Grace, WallClockThatFallsBackDisturbsNothingButItsReturnDoes) {
  Watch watch = observe({}, at(kNoon, kHour));
  watch = observe(watch, at(kNoon - kHour, 2 * kHour));
  EXPECT_EQ(watch.disturbed_at, kHour);
  EXPECT_EQ(watch.before, kNoon);
  watch = observe(watch, at(kNoon + 2 * kHour, 3 * kHour));
  EXPECT_EQ(watch.disturbed_at, 3 * kHour);
  EXPECT_EQ(watch.before, kNoon + 2 * kHour);
}

// A lease of the time before the fall bears a later instant than the leap after it.
TEST(Grace, ALeapAfterAFallIsMeantForWhatWasTakenBeforeTheFall) {
  Watch watch = observe({}, at(kNoon, kHour));
  const Microseconds taken_at = kNoon + 10 * kMinute;
  watch = observe(watch, at(taken_at, kHour + 10 * kMinute));
  watch = observe(watch, at(taken_at - kHour, kHour + 10 * kMinute));
  watch = observe(watch, at(taken_at - kHour + kMinute, kHour + 10 * kMinute));
  EXPECT_EQ(watch.disturbed_at, kHour + 10 * kMinute);
  EXPECT_GE(watch.before, taken_at);
}

// Nobody looked between the last instant before the fall and the fall.
TEST(Grace, TheClockWentOnBeforeItFell) {
  Watch watch = observe({}, at(kNoon, kHour));
  watch = observe(watch, at(kNoon - kHour, kHour + kMinute));
  watch = observe(watch, at(kNoon, kHour + 2 * kMinute));
  EXPECT_EQ(watch.before, kNoon + kMinute);
}

// How long the grace has gone on is not told by a clock that can be set.
TEST(Grace, AFallDoesNotMakeItLonger) {
  Watch watch = observe({}, at(kNoon, kHour));
  watch = observe(watch, at(kNoon - kHour, kHour + kMinute));
  EXPECT_EQ(watch.disturbed_at, kHour);
}

} // namespace
} // namespace jobq::core
