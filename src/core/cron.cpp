#include "core/cron.hpp"

#include <algorithm>
#include <bit>

#include "core/pure.hpp"

namespace jobq::core {

namespace {

using Days = std::uint32_t; // of a month, bits 1 to 31

constexpr int kNone = 64;
constexpr int kSunday = 0;
constexpr int kSaturday = 6;

struct Month {
  int length = 31;
  int first_weekday = 0; // of its first day

  int weekday(int day) const { return (first_weekday + day - 1) % 7; }
};

bool has(std::uint64_t set, int member) { return (set >> member & 1) != 0; }

// The least member from there on, or kNone.
int next_in(std::uint64_t set, int from) {
  if (from >= kNone) return kNone;
  return std::countr_zero(set & ~std::uint64_t{0} << from);
}

Days from_to(int first, int last) {
  std::uint64_t below = (std::uint64_t{1} << std::max(first, 1)) - 1;
  std::uint64_t up_to = (std::uint64_t{2} << std::max(last, 0)) - 1;
  return static_cast<Days>(up_to & ~below);
}

Days on_weekdays(std::uint32_t weekdays, const Month& month) {
  std::uint64_t weeks = 0;
  for (int shift = 0; shift <= 35; shift += 7) weeks |= std::uint64_t{weekdays} << shift;
  return static_cast<Days>(weeks >> month.first_weekday << 1) & from_to(1, month.length);
}

// A month is never left: from its first day on to Monday, from its last one back to Friday.
int nearest_working_day(int day, const Month& month) {
  switch (month.weekday(day)) {
  case kSaturday:
    return day > 1 ? day - 1 : day + 2;
  case kSunday:
    return day < month.length ? day + 1 : day - 2;
  default:
    return day;
  }
}

int last_working_day(const Month& month) {
  int weekday = month.weekday(month.length);
  return month.length - (weekday == kSunday ? 2 : weekday == kSaturday ? 1 : 0);
}

Days by_day_of_month(const Cron& cron, const Month& month) {
  Days days = cron.days;
  for (int n = 0; n < month.length; ++n)
    if (has(cron.days_before_last, n)) days |= Days{1} << (month.length - n);
  for (int day = 1; day <= month.length; ++day)
    if (has(cron.nearest_weekdays, day)) days |= Days{1} << nearest_working_day(day, month);
  if (cron.is_last_weekday) days |= Days{1} << last_working_day(month);
  return days & from_to(1, month.length);
}

Days by_day_of_week(const Cron& cron, const Month& month) {
  Days days = on_weekdays(cron.weekdays, month);
  for (int n = 1; n <= 5; ++n)
    days |= on_weekdays(cron.nth_weekdays[n], month) & from_to(7 * n - 6, std::min(7 * n, 31));
  return days | (on_weekdays(cron.last_weekdays, month) & from_to(month.length - 6, month.length));
}

std::optional<Day> next_day(const Cron& cron, Day from) {
  Date date = date_of(from);
  constexpr int kMonthsOfCycle = 400 * 12;
  for (int months = 0; months <= kMonthsOfCycle; ++months) {
    Days days = matching_days(cron, date.year, date.month) & from_to(date.day, 31);
    if (days != 0)
      return day_of({.year = date.year, .month = date.month, .day = std::countr_zero(days)});
    date = date.month < 12 ? Date{.year = date.year, .month = date.month + 1}
                           : Date{.year = date.year + 1};
  }
  return std::nullopt;
}

// The first second of a day that matches, from that one on; nothing if the day has none.
std::optional<int> next_second(const Cron& cron, int from) {
  int hour = from / 3600;
  int minute = from / 60 % 60;
  int second = from % 60;
  if (!has(cron.hours, hour)) {
    hour = next_in(cron.hours, hour);
    minute = second = 0;
  }
  if (!has(cron.minutes, minute)) {
    minute = next_in(cron.minutes, minute);
    second = 0;
  }
  second = next_in(cron.seconds, second);
  if (second == kNone) {
    minute = next_in(cron.minutes, minute + 1);
    second = next_in(cron.seconds, 0);
  }
  if (minute == kNone) {
    hour = next_in(cron.hours, hour + 1);
    minute = next_in(cron.minutes, 0);
    second = next_in(cron.seconds, 0);
  }
  if (hour == kNone || minute == kNone || second == kNone) return std::nullopt;
  return hour * 3600 + minute * 60 + second;
}

} // namespace

Days matching_days(const Cron& cron, std::int64_t year, int month) {
  if (!has(cron.months, month)) return 0;
  const Month shape = {.length = days_in(year, month),
                       .first_weekday = weekday_of(day_of({.year = year, .month = month}))};
  Days of_month = by_day_of_month(cron, shape);
  Days of_week = by_day_of_week(cron, shape);
  return cron.is_day_restricted_by_both ? of_month & of_week : of_month | of_week;
}

// In 28 years without a leap year left out, each kind of year comes: leap or not, and its weekday.
bool can_match(const Cron& cron) {
  for (std::int64_t year = 2000; year < 2028; ++year)
    for (int month = 1; month <= 12; ++month)
      if (matching_days(cron, year, month) != 0) return true;
  return false;
}

std::optional<Seconds> next_match(const Cron& cron, Seconds from) {
  std::optional<int> first = next_second(cron, 0);
  if (!first) return std::nullopt;
  Day today = day_at(from);
  std::optional<int> later_today = next_second(cron, second_of_day(from));
  std::optional<Day> day = next_day(cron, later_today ? today : today + 1);
  if (!day) return std::nullopt;
  return *day * kSecondsOfDay + (*day == today ? *later_today : *first);
}

} // namespace jobq::core
