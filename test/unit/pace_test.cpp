#include "core/pace.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr Microseconds kInterval = 50'000;
constexpr int kBurst = 4;
constexpr Microseconds kNoon = 12 * kHour;

TEST(Pace, TheFirstIsAtOnce) {
  Pace pace(kInterval, kBurst);
  EXPECT_EQ(pace.wait_at(kNoon), 0);
  EXPECT_EQ(pace.wait_at(0), 0);
}

TEST(Pace, ABurstIsFreeAndThenOneInAnInterval) {
  Pace pace(kInterval, kBurst);
  for (int i = 0; i < kBurst; ++i) {
    EXPECT_EQ(pace.wait_at(kNoon), 0) << i;
    pace.note(kNoon);
  }
  EXPECT_EQ(pace.wait_at(kNoon), kInterval);
  EXPECT_EQ(pace.wait_at(kNoon + kInterval - 1), 1);
  EXPECT_EQ(pace.wait_at(kNoon + kInterval), 0);
  pace.note(kNoon + kInterval);
  EXPECT_EQ(pace.wait_at(kNoon + kInterval), kInterval);
}

TEST(Pace, WithoutABurstItIsEven) {
  Pace pace(kInterval, 1);
  pace.note(kNoon);
  EXPECT_EQ(pace.wait_at(kNoon), kInterval);
  EXPECT_EQ(pace.wait_at(kNoon + kInterval), 0);
}

TEST(Pace, ALongSilenceSavesUpNoMoreThanABurst) {
  Pace pace(kInterval, kBurst);
  pace.note(kNoon);
  for (int i = 0; i < kBurst; ++i) {
    EXPECT_EQ(pace.wait_at(kNoon + kHour), 0);
    pace.note(kNoon + kHour);
  }
  EXPECT_EQ(pace.wait_at(kNoon + kHour), kInterval);
}

TEST(Pace, WhatIsDoneBeforeItsTimeIsWaitedForAfterwards) {
  Pace pace(kInterval, 1);
  pace.note(kNoon);
  pace.note(kNoon);
  EXPECT_EQ(pace.wait_at(kNoon), 2 * kInterval);
}

// Whoever is in a hurry and asks before each: never more than burst + one for each interval, in any
// stretch of time; and nobody waits longer than an interval.
TEST(Pace, HoldsOverAnyStretchOfTime) {
  std::mt19937 random(7);
  Pace pace(kInterval, kBurst);
  std::vector<Microseconds> done;
  Microseconds now = kNoon;
  for (int i = 0; i < 3000; ++i) {
    if (std::uniform_int_distribution(0, 9)(random) == 0)
      now += std::uniform_int_distribution<Microseconds>(0, 5 * kInterval)(random);
    Microseconds wait = pace.wait_at(now);
    ASSERT_LE(wait, kInterval);
    now += wait;
    ASSERT_EQ(pace.wait_at(now), 0);
    pace.note(now);
    done.push_back(now);
  }
  for (std::size_t from = 0; from < done.size(); ++from)
    for (std::size_t to = from; to < done.size() && to < from + 200; ++to)
      ASSERT_LE(static_cast<Microseconds>(to - from + 1),
                kBurst + (done[to] - done[from]) / kInterval);
}

} // namespace
} // namespace jobq::core
