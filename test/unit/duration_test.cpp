#include "core/duration.hpp"

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr std::int32_t kMostDays = std::numeric_limits<std::int32_t>::max();

TEST(Duration, DayIsTwentyFourHours) {
  EXPECT_EQ(length_of({.microseconds = 5, .days = 2}).microseconds, 2 * kDay + 5);
}

TEST(Duration, MonthsAreRefused) {
  EXPECT_EQ(length_of({.months = 1}).flaw, Flaw::months);
  EXPECT_EQ(length_of({.months = std::numeric_limits<std::int32_t>::max()}).flaw, Flaw::months);
}

TEST(Duration, NegativeFieldIsRefusedEvenIfTheSumIsNot) {
  EXPECT_EQ(length_of({.microseconds = -kHour, .days = 1}).flaw, Flaw::negative);
  EXPECT_EQ(length_of({.microseconds = 2 * kDay, .days = -1}).flaw, Flaw::negative);
  EXPECT_EQ(length_of({.months = -1}).flaw, Flaw::negative);
  EXPECT_EQ(keep_time_of({.days = -1}).flaw, Flaw::negative);
}

TEST(Duration, TooLongIsSaidNotWrappedAround) {
  EXPECT_EQ(length_of({.microseconds = kForever, .days = 1}).flaw, Flaw::too_long);
  EXPECT_EQ(length_of({.microseconds = kForever, .days = kMostDays}).flaw, Flaw::too_long);
}

TEST(Duration, KeepTimeMayNameMonthsAndYears) {
  EXPECT_EQ(keep_time_of({.months = 1}).microseconds, 30 * kDay);
  EXPECT_EQ(keep_time_of({.microseconds = 7, .days = 1, .months = 14}).microseconds,
            (365 + 60 + 1) * kDay + 7);
}

TEST(Duration, KeepTimeOfAThousandYearsIsForEver) {
  EXPECT_EQ(keep_time_of({.months = 12'000}).microseconds, kForever);
  EXPECT_EQ(keep_time_of({.days = 365'000}).microseconds, kForever);
  EXPECT_EQ(keep_time_of({.days = kMostDays}).microseconds, kForever);
  EXPECT_EQ(keep_time_of({.microseconds = kForever}).microseconds, kForever);
  EXPECT_EQ(keep_time_of({.days = 364'999}).microseconds, 364'999 * kDay);
}

TEST(Duration, LaterStopsAtTheCalendarsEnd) {
  EXPECT_EQ(later(10, 5, 100), 15);
  EXPECT_EQ(later(10, 90, 100), 100);
  EXPECT_EQ(later(10, 91, 100), kForever);
  EXPECT_EQ(later(10, kForever, 100), kForever);
  EXPECT_EQ(later(kForever, kForever, kForever), kForever);
}

} // namespace
} // namespace jobq::core
