#include "core/mark.hpp"
#include "unit/mark_model.hpp"

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

Place at(Microseconds instant, std::int64_t job_id) {
  return {.instant = instant, .job_id = job_id};
}

TEST(Mark, IsUnreadAtFirst) {
  EXPECT_EQ(Mark{}.instant, 0);
  EXPECT_EQ(Mark{}.low, kBeginning);
}

TEST(Mark, HoldsTheEarliestRow) {
  Mark mark;
  mark.begin_reading();
  mark.end_reading(kForever, kEnd);
  EXPECT_EQ(mark.instant, kForever);
  EXPECT_EQ(mark.low, kEnd);
  mark.lower(500);
  mark.lower(700);
  EXPECT_EQ(mark.instant, 500);
  mark.lower(300);
  EXPECT_EQ(mark.instant, 300);
  EXPECT_EQ(mark.low, Place{.instant = 300});
}

TEST(Mark, WhatIsLoweredWhileItIsReadStays) {
  Mark mark;
  mark.begin_reading();
  mark.lower(100);
  mark.end_reading(400, at(200, 7));
  EXPECT_EQ(mark.instant, 100);
  EXPECT_EQ(mark.low, Place{.instant = 100});
}

TEST(Mark, AReadingRaisesIt) {
  Mark mark{.instant = 100, .low = at(100, 1)};
  mark.begin_reading();
  EXPECT_EQ(mark.low, at(100, 1)); // as long as it is under way
  mark.end_reading(400, at(100, 8));
  EXPECT_EQ(mark.instant, 400);
  EXPECT_EQ(mark.low, at(100, 8));
}

TEST(Mark, ARowOfTheSameInstantLowersItToTheFirstOfThem) {
  Mark mark{.instant = 100, .low = at(100, 8)};
  mark.lower(100);
  EXPECT_EQ(mark.low, Place{.instant = 100});
}

TEST(Place, IsOrderedByInstantThenJob) {
  EXPECT_LT(at(1, 9), at(2, 1));
  EXPECT_LT(at(2, 1), at(2, 2));
  EXPECT_LT(kBeginning, Place{.instant = 0});
  EXPECT_LT(Place{.instant = 0}, kEnd);
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

TEST(Mark, SparesMostLooksTheBeginning) {
  MarkModel model(pick_at_random(1), MarkRule::right);
  for (int i = 0; i < 40'000; ++i) model.step();
  EXPECT_GT(model.taken(), 1000);
  EXPECT_GT(model.short_looks(), 1000);
}

// What each rule is for, and that this test would see it broken.
class BrokenMark : public testing::TestWithParam<MarkRule> {};

TEST_P(BrokenMark, IsLate) { EXPECT_GT(times_late(GetParam()), 0); }

INSTANTIATE_TEST_SUITE_P(Rules, BrokenMark,
                         testing::Values(MarkRule::begins_after_snapshot, MarkRule::sets_the_mark,
                                         MarkRule::sets_low, MarkRule::writer_lowers_first,
                                         MarkRule::lowers_instant_alone,
                                         MarkRule::looks_at_the_same, MarkRule::low_is_what_is_left,
                                         MarkRule::low_passes_deletions, MarkRule::error_raises_low,
                                         MarkRule::error_forgets_instant,
                                         MarkRule::copy_lowers_nothing));

} // namespace
} // namespace jobq::core
