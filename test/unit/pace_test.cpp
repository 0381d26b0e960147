#include "core/pace.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr Microseconds kLeast = 10'000;
constexpr Microseconds kMost = 51'000;
constexpr Microseconds kStart = 1'000'000;

TEST(Pace, TheFirstIsAtOnce) {
  Pace pace(kLeast, kMost);
  EXPECT_EQ(pace.wait_at(kStart), 0);
}

TEST(Pace, TheNextWaitsForTheLeastInterval) {
  Pace pace(kLeast, kMost);
  pace.note(kStart);
  EXPECT_EQ(pace.wait_at(kStart), kLeast);
  EXPECT_EQ(pace.wait_at(kStart + kLeast - 1), 1);
  EXPECT_EQ(pace.wait_at(kStart + kLeast), 0);
}

// How often it is done in ten seconds when it is wanted every `gap`, and the longest wait.
struct Outcome {
  int times = 0;
  Microseconds longest = 0;
};
Outcome wanted_every(Microseconds gap) {
  Pace pace(kLeast, kMost);
  Outcome outcome;
  for (Microseconds wanted = kStart, done = 0; wanted < kStart + 10 * kSecond; wanted += gap) {
    if (wanted <= done) continue; // done already, with an earlier one
    done = wanted + pace.wait_at(wanted);
    pace.note(done);
    ++outcome.times;
    outcome.longest = std::max(outcome.longest, done - wanted);
  }
  return outcome;
}

TEST(Pace, WhatComesAloneNeverWaits) {
  for (Microseconds gap : {20'000, 30'000, 50'000, 51'000, 1'000'000}) {
    Outcome outcome = wanted_every(gap);
    EXPECT_EQ(outcome.longest, 0) << gap;
    EXPECT_EQ(outcome.times, (10 * kSecond + gap - 1) / gap) << gap;
  }
}

TEST(Pace, WhatComesAgainAndAgainIsDoneTwentyTimesASecond) {
  for (Microseconds gap : {100, 200, 1'000, 5'000}) {
    Outcome outcome = wanted_every(gap);
    EXPECT_LE(outcome.times, 200) << gap;
    EXPECT_GE(outcome.times, 150) << gap;
    EXPECT_LE(outcome.longest, kMost) << gap;
  }
}

TEST(Pace, AfterASilenceItIsAtOnceAgain) {
  Pace pace(kLeast, kMost);
  Microseconds now = kStart;
  for (int i = 0; i < 10; ++i) {
    now += pace.wait_at(now);
    pace.note(now);
  }
  EXPECT_EQ(pace.wait_at(now), kMost);
  now += kMost + kLeast;
  EXPECT_EQ(pace.wait_at(now), 0);
  pace.note(now);
  EXPECT_EQ(pace.wait_at(now), kLeast);
}

} // namespace
} // namespace jobq::core
