#include "core/mark.hpp"
#include "unit/mark_model.hpp"

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

TEST(Mark, IsUnreadAtFirst) { EXPECT_EQ(Mark{}.instant, 0); }

TEST(Mark, HoldsTheEarliestRow) {
  Mark mark;
  mark.begin_reading();
  mark.end_reading(kForever);
  EXPECT_EQ(mark.instant, kForever);
  mark.lower(500);
  mark.lower(700);
  EXPECT_EQ(mark.instant, 500);
  mark.lower(300);
  EXPECT_EQ(mark.instant, 300);
}

TEST(Mark, WhatIsLoweredWhileItIsReadStays) {
  Mark mark;
  mark.begin_reading();
  mark.lower(100);
  mark.end_reading(400);
  EXPECT_EQ(mark.instant, 100);
}

TEST(Mark, AReadingRaisesIt) {
  Mark mark{.instant = 100};
  mark.begin_reading();
  mark.end_reading(400);
  EXPECT_EQ(mark.instant, 400);
}

int times_late(MarkRule rule) {
  int late = 0;
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    MarkModel model(pick_at_random(seed), rule);
    for (int i = 0; i < 40'000; ++i) {
      model.step();
      late += model.is_late() ? 1 : 0;
    }
  }
  return late;
}

TEST(Mark, IsNeverTooLate) { EXPECT_EQ(times_late(MarkRule::right), 0); }

// What each rule is for, and that this test would see it broken.
TEST(Mark, IsLateIfTheReaderBeginsAfterItsSnapshot) {
  EXPECT_GT(times_late(MarkRule::begins_after_snapshot), 0);
}

TEST(Mark, IsLateIfTheReaderForgetsWhatWasLoweredMeanwhile) {
  EXPECT_GT(times_late(MarkRule::sets_the_mark), 0);
}

TEST(Mark, IsLateIfTheWriterLowersBeforeItsRowIsVisible) {
  EXPECT_GT(times_late(MarkRule::writer_lowers_first), 0);
}

} // namespace
} // namespace jobq::core
