// Which times match, told of each one by itself; and expressions made at random.
#pragma once

#include "core/cron_text.hpp"
#include "core/mistake.hpp"
#include "unit/pick.hpp"

#include <string>

#include <gtest/gtest.h>

namespace jobq::core {

inline bool has(std::uint64_t set, std::int64_t member) { return (set >> member & 1) != 0; }

inline bool is_working_day(Day day) { return weekday_of(day) >= 1 && weekday_of(day) <= 5; }

// Whether that day is the working day nearest to the other one, in the same month.
inline bool is_nearest(Day day, Day wanted) {
  int month = date_of(wanted).month;
  Day distance = 0;
  for (; distance <= 2; ++distance) // a Friday before comes before a Monday after
    for (Day near : {wanted - distance, wanted + distance})
      if (is_working_day(near) && date_of(near).month == month) return near == day;
  return false;
}

inline bool matches_day_of_month(const Cron& cron, Day day) {
  const Date date = date_of(day);
  Day last = day - date.day + days_in(date.year, date.month);
  if (has(cron.days, date.day) || has(cron.days_before_last, last - day)) return true;
  for (int n = 1; n <= days_in(date.year, date.month); ++n)
    if (has(cron.nearest_weekdays, n) && is_nearest(day, day - date.day + n)) return true;
  return cron.is_last_weekday && is_nearest(day, last);
}

inline bool matches_day_of_week(const Cron& cron, Day day) {
  const Date date = date_of(day);
  int weekday = weekday_of(day);
  if (has(cron.weekdays, weekday)) return true;
  if (has(cron.nth_weekdays[static_cast<std::size_t>((date.day - 1) / 7 + 1)], weekday))
    return true;
  return has(cron.last_weekdays, weekday) && date_of(day + 7).month != date.month;
}

inline bool matches_date(const Cron& cron, Day day) {
  if (!has(cron.months, date_of(day).month)) return false;
  bool by_month = matches_day_of_month(cron, day);
  bool by_week = matches_day_of_week(cron, day);
  return cron.is_day_restricted_by_both ? by_month && by_week : by_month || by_week;
}

inline bool matches(const Cron& cron, Seconds local) {
  int second = second_of_day(local);
  return has(cron.seconds, second % 60) && has(cron.minutes, second / 60 % 60) &&
         has(cron.hours, second / 3600) && matches_date(cron, day_at(local));
}

// A list of numbers, ranges and steps.
inline std::string pick_list(const Pick& pick, int least, int most) {
  std::string list;
  for (std::int64_t items = pick(1, 3); items > 0; --items) {
    std::int64_t first = pick(least, most);
    list += std::to_string(first);
    if (pick(0, 2) == 0) {
      list += "-" + std::to_string(pick(first, most));
      if (pick(0, 1) == 0) list += "/" + std::to_string(pick(1, most));
    }
    if (items > 1) list += ",";
  }
  return list;
}

inline std::string pick_field(const Pick& pick, int least, int most) {
  switch (pick(0, 3)) {
  case 0:
    return "*";
  case 1:
    return "*/" + std::to_string(pick(1, most));
  default:
    return pick_list(pick, least, most);
  }
}

inline std::string pick_day(const Pick& pick) {
  switch (pick(0, 6)) {
  case 0:
    return "L,LW";
  case 1:
    return "L-" + std::to_string(pick(1, 9)) + "," + std::to_string(pick(1, 31));
  case 2:
    return std::to_string(pick(1, 31)) + "W,1W,31W";
  default:
    return pick_field(pick, 1, 31);
  }
}

inline std::string pick_weekday(const Pick& pick) {
  std::string weekday = std::to_string(pick(0, 7));
  switch (pick(0, 5)) {
  case 0:
    return weekday + "#" + std::to_string(pick(1, 5)) + ",mon#1";
  case 1:
    return weekday + "L";
  default:
    return pick_field(pick, 0, 6);
  }
}

// Six fields, of which one in two is the full minute.
inline std::string pick_cron(const Pick& pick, bool has_seconds) {
  auto dense = [&](std::string field) { return pick(0, 2) == 0 ? field : std::string("*"); };
  return (has_seconds ? pick_field(pick, 0, 59) : "0") + " " + pick_field(pick, 0, 59) + " " +
         pick_field(pick, 0, 23) + " " + dense(pick_day(pick)) + " " +
         dense(pick_field(pick, 1, 12)) + " " + dense(pick_weekday(pick));
}

// Nothing if no date matches.
inline std::optional<Cron> read_if_possible(std::string_view text) {
  try {
    return read_cron(text);
  } catch (const Mistake& mistake) {
    EXPECT_EQ(mistake.message, "no date matches the cron expression") << text;
    return std::nullopt;
  }
}

} // namespace jobq::core
