#include "core/cron.hpp"
#include "unit/cron_model.hpp"

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr Day kCycle = 146'097;

Seconds at(std::int64_t year, int month, int day, int hour = 0, int minute = 0) {
  return day_of({.year = year, .month = month, .day = day}) * kSecondsOfDay + hour * 3600 +
         minute * 60;
}

using Days = std::vector<int>;

Days days_of(std::string_view text, std::int64_t year, int month) {
  std::uint32_t set = matching_days(read_cron(text), year, month);
  Days days;
  for (int day = 0; day < 32; ++day)
    if (has(set, day)) days.push_back(day);
  return days;
}

TEST(Cron, LastDaysOfTheMonth) {
  EXPECT_EQ(days_of("0 0 L * *", 2024, 2), Days({29}));
  EXPECT_EQ(days_of("0 0 $ * *", 2023, 2), Days({28}));
  EXPECT_EQ(days_of("0 0 L-1,L-30 * *", 2025, 1), Days({1, 30}));
  EXPECT_EQ(days_of("0 0 l-30 * *", 2025, 4), Days({}));
  EXPECT_EQ(days_of("0 0 31 * *", 2025, 4), Days({}));
}

TEST(Cron, WorkingDaysStayInTheirMonth) {
  EXPECT_EQ(days_of("0 0 15W * *", 2025, 3), Days({14})) << "Saturday";
  EXPECT_EQ(days_of("0 0 15W * *", 2025, 6), Days({16})) << "Sunday";
  EXPECT_EQ(days_of("0 0 15w * *", 2025, 7), Days({15})) << "Tuesday";
  EXPECT_EQ(days_of("0 0 1W * *", 2025, 2), Days({3})) << "Saturday the first";
  EXPECT_EQ(days_of("0 0 31W * *", 2025, 8), Days({29})) << "Sunday the last";
  EXPECT_EQ(days_of("0 0 31W * *", 2025, 6), Days({})) << "no such day";
  EXPECT_EQ(days_of("0 0 LW * *", 2025, 5), Days({30})) << "Saturday";
  EXPECT_EQ(days_of("0 0 LW * *", 2025, 8), Days({29})) << "Sunday";
}

TEST(Cron, WeekdaysOfTheMonth) {
  EXPECT_EQ(days_of("0 0 * * 5#3", 2025, 3), Days({21}));
  EXPECT_EQ(days_of("0 0 * * mon#5", 2025, 3), Days({31}));
  EXPECT_EQ(days_of("0 0 * * mon#5", 2025, 4), Days({}));
  EXPECT_EQ(days_of("0 0 * * FRIL,7L", 2025, 2), Days({23, 28}));
  EXPECT_EQ(days_of("0 0 * * 0", 2025, 2), days_of("0 0 * * 7", 2025, 2));
}

TEST(Cron, OneOfTheDayFieldsIsEnoughUnlessOneBeginsWithAStar) { // case 16
  EXPECT_EQ(days_of("0 0 13 * 5", 2025, 6), Days({6, 13, 20, 27}));
  EXPECT_EQ(days_of("0 0 1 * 5", 2025, 6), Days({1, 6, 13, 20, 27}));
  EXPECT_EQ(days_of("0 0 */2 * 5", 2025, 6), Days({13, 27}));
  EXPECT_EQ(days_of("0 0 1-7 * */7", 2025, 6), Days({1}));
  EXPECT_EQ(days_of("0 0 1 * *", 2025, 6), Days({1}));
}

TEST(Cron, LeapDays) { // case 8
  const Cron cron = read_cron("0 0 29 2 *");
  EXPECT_EQ(next_match(cron, at(2023, 6, 1)), at(2024, 2, 29));
  EXPECT_EQ(next_match(cron, at(2024, 3, 1)), at(2028, 2, 29));
  EXPECT_EQ(next_match(cron, at(2097, 1, 1)), at(2104, 2, 29));
  EXPECT_EQ(next_match(read_cron("59 23 L * *"), at(2100, 2, 1)), at(2100, 2, 28, 23, 59));
}

TEST(Cron, FirstLastAndThirtyFirstOver400Days) { // case 7
  for (Day day = day_of({.year = 2023, .month = 12, .day = 1}), end = day + 400; day < end; ++day) {
    const Date date = date_of(day);
    auto is_next = [&](std::string_view text) {
      return next_match(read_cron(text), day * kSecondsOfDay) == day * kSecondsOfDay;
    };
    ASSERT_EQ(is_next("0 0 1 * *"), date.day == 1) << day;
    ASSERT_EQ(is_next("0 0 31 * *"), date.day == 31) << day;
    ASSERT_EQ(is_next("0 0 L * *"), date.day == days_in(date.year, date.month)) << day;
  }
}

TEST(Cron, AMatchIsItsOwnNext) {
  const Cron cron = read_cron("10,50 59 23 * * *");
  EXPECT_EQ(next_match(cron, at(2025, 1, 1, 23, 59) + 10), at(2025, 1, 1, 23, 59) + 10);
  EXPECT_EQ(next_match(cron, at(2025, 1, 1, 23, 59) + 11), at(2025, 1, 1, 23, 59) + 50);
  EXPECT_EQ(next_match(cron, at(2025, 12, 31, 23, 59) + 51), at(2026, 1, 1, 23, 59) + 10);
}

TEST(Cron, WhatMatchesNothingEnds) { // case 14
  Cron cron = read_cron("0 0 30 1,2 *");
  cron.months = 1u << 2;
  EXPECT_FALSE(can_match(cron));
  EXPECT_FALSE(next_match(cron, 0));
  cron = read_cron("* * * * *");
  cron.minutes = 0;
  EXPECT_FALSE(next_match(cron, 0));
}

TEST(Cron, RareDatesCome) {
  EXPECT_EQ(next_match(read_cron("0 0 29 2 */7"), at(2088, 3, 1)), at(2128, 2, 29));
  EXPECT_EQ(next_match(read_cron("0 0 * 2 1#5"), at(2000, 1, 1)), at(2016, 2, 29));
}

// Day by day through the years after which nothing new comes.
TEST(Cron, CanMatchKnowsEveryKindOfYear) {
  const std::string_view rare[] = {"0 0 29 2 */7",  "0 0 * 2 1#5",  "0 0 30 2,4 *",
                                   "0 0 29W 2 */3", "0 0 L-28 2 *", "0 0 */29 2,4 6#5"};
  for (std::string_view text : rare) {
    const Cron cron = read_cron(text);
    for (int month = 1; month <= 12; ++month) {
      Cron of_month = cron;
      of_month.months &= 1u << month;
      bool comes = false;
      for (Day day = 0; day < kCycle && !comes; day += days_in(2001, 2)) {
        const Date date = date_of(day);
        comes = date.month == month && matching_days(of_month, date.year, month) != 0;
      }
      ASSERT_EQ(can_match(of_month), comes) << text << ", month " << month;
    }
  }
}

TEST(Cron, DaysAreThoseThatMatchEachByItself) {
  Pick pick = pick_at_random(7);
  for (int i = 0; i < 300; ++i) {
    std::string text = "* * " + pick_day(pick) + " * " + pick_weekday(pick);
    std::optional<Cron> read = read_if_possible(text);
    if (!read) continue;
    const Cron cron = *read;
    for (int k = 0; k < 10; ++k) {
      const Date first = {.year = pick(1900, 2400), .month = static_cast<int>(pick(1, 12))};
      std::uint32_t days = 0;
      for (int day = 1; day <= days_in(first.year, first.month); ++day)
        if (matches_date(cron, day_of(first) + day - 1)) days |= 1u << day;
      ASSERT_EQ(matching_days(cron, first.year, first.month), days)
          << text << " in " << first.year << "-" << first.month;
    }
  }
}

// From time to time, second by second to the next match or a day on.
TEST(Cron, NextMatchIsTheFirstOne) {
  Pick pick = pick_at_random(8);
  for (int i = 0; i < 150; ++i) {
    std::string text = pick_cron(pick, true);
    Seconds from = pick(-40'000 * kSecondsOfDay, 40'000 * kSecondsOfDay);
    std::optional<Cron> read = read_if_possible(text);
    if (!read) continue;
    const Cron cron = *read;
    std::optional<Seconds> next = next_match(cron, from);
    ASSERT_TRUE(next) << text;
    ASSERT_GE(*next, from) << text;
    ASSERT_TRUE(matches(cron, *next)) << text << " from " << from;
    for (Seconds time = from; time < *next && time < from + kSecondsOfDay; ++time)
      ASSERT_FALSE(matches(cron, time)) << text << " from " << from;
    for (Day day = day_at(from) + 1; day < day_at(*next); ++day)
      ASSERT_FALSE(matches_date(cron, day)) << text << " from " << from;
  }
}

} // namespace
} // namespace jobq::core
