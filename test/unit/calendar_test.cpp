#include "core/calendar.hpp"

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr Day kCycle = 146'097; // 400 years

bool is_same(const Date& date, const Date& other) {
  return date.year == other.year && date.month == other.month && date.day == other.day;
}

Date day_after(const Date& date) {
  if (date.day < days_in(date.year, date.month))
    return {.year = date.year, .month = date.month, .day = date.day + 1};
  if (date.month < 12) return {.year = date.year, .month = date.month + 1};
  return {.year = date.year + 1};
}

TEST(Calendar, KnowsDaysOfHistory) {
  EXPECT_EQ(day_of({.year = 2000, .month = 1, .day = 1}), 0);
  EXPECT_EQ(day_of({.year = 1970, .month = 1, .day = 1}), -10'957);
  EXPECT_EQ(day_of({.year = 2024, .month = 2, .day = 29}), 8825);
  EXPECT_EQ(day_of({.year = 2100, .month = 3, .day = 1}), 36'584);
  EXPECT_EQ(weekday_of(day_of({.year = 1969, .month = 7, .day = 20})), 0);
  EXPECT_EQ(weekday_of(day_of({.year = 2026, .month = 11, .day = 30})), 1);
  EXPECT_EQ(weekday_of(0), 6);
}

TEST(Calendar, EachDayFollowsTheOneBefore) { // case 7
  Date date = date_of(-kCycle - 1);
  int weekday = weekday_of(-kCycle - 1);
  for (Day day = -kCycle; day < kCycle; ++day) {
    date = day_after(date);
    weekday = (weekday + 1) % 7;
    ASSERT_TRUE(is_same(date_of(day), date)) << day;
    ASSERT_EQ(day_of(date), day);
    ASSERT_EQ(weekday_of(day), weekday) << day;
  }
}

TEST(Calendar, BeginsAnewAfter400Years) {
  for (Day day : {-kCycle, Day{-1}, Day{0}, Day{59}, Day{60}, kCycle - 1}) {
    Date date = date_of(day);
    date.year += 400 * 500'000;
    EXPECT_TRUE(is_same(date_of(day + 500'000 * kCycle), date)) << day;
    EXPECT_EQ(day_of(date), day + 500'000 * kCycle);
    date.year -= 400 * 1'000'000;
    EXPECT_TRUE(is_same(date_of(day - 500'000 * kCycle), date)) << day;
    EXPECT_EQ(day_of(date), day - 500'000 * kCycle);
  }
}

TEST(Calendar, CenturiesAreLeapYearsOneInFour) { // case 8
  EXPECT_EQ(days_in(2000, 2), 29);
  EXPECT_EQ(days_in(2024, 2), 29);
  EXPECT_EQ(days_in(2100, 2), 28);
  EXPECT_EQ(days_in(-4, 2), 29);
  EXPECT_EQ(days_in(2025, 4), 30);
  EXPECT_EQ(days_in(2025, 12), 31);
}

TEST(Calendar, ADayBefore2000BeginsAtMidnightToo) {
  EXPECT_EQ(day_at(-1), -1);
  EXPECT_EQ(second_of_day(-1), kSecondsOfDay - 1);
  EXPECT_EQ(day_at(-kSecondsOfDay), -1);
  EXPECT_EQ(second_of_day(-kSecondsOfDay), 0);
  EXPECT_EQ(day_at(kSecondsOfDay - 1), 0);
  EXPECT_EQ(second_of_day(kSecondsOfDay - 1), kSecondsOfDay - 1);
}

} // namespace
} // namespace jobq::core
