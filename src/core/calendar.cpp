#include "core/calendar.hpp"

#include "core/pure.hpp"

namespace jobq::core {

namespace {

// After 400 years the calendar begins anew, weekdays included. A year of the reckoning begins in
// March, so that a leap day is its last one.
constexpr std::int64_t kYearsOfCycle = 400;
constexpr Day kDaysOfCycle = 146'097;
constexpr Day kFirstOfMarch = 60; // of 2000, which begins a cycle
constexpr std::int64_t kFirstCycle = 2000 / kYearsOfCycle;

std::int64_t floor_of(std::int64_t dividend, std::int64_t divisor) {
  return dividend / divisor - (dividend % divisor < 0 ? 1 : 0);
}

bool is_leap(std::int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

// From March on months have 31, 30, 31, 30, 31 days, and again.
int days_before(int month_from_march) { return (153 * month_from_march + 2) / 5; }
Day days_before_year(Day year_of_cycle) {
  return year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100;
}

} // namespace

Day day_of(const Date& date) {
  std::int64_t year = date.month > 2 ? date.year : date.year - 1;
  std::int64_t cycle = floor_of(year, kYearsOfCycle);
  return (cycle - kFirstCycle) * kDaysOfCycle + days_before_year(year - cycle * kYearsOfCycle) +
         days_before((date.month + 9) % 12) + date.day - 1 + kFirstOfMarch;
}

Date date_of(Day day) {
  std::int64_t cycle = floor_of(day - kFirstOfMarch, kDaysOfCycle);
  Day rest = day - kFirstOfMarch - cycle * kDaysOfCycle;
  // The leap days before it taken out, all years have 365 days.
  std::int64_t year = (rest - rest / 1460 + rest / 36'524 - rest / 146'096) / 365;
  int day_of_year = static_cast<int>(rest - days_before_year(year));
  int month = (5 * day_of_year + 2) / 153;
  return {.year = (cycle + kFirstCycle) * kYearsOfCycle + year + (month >= 10 ? 1 : 0),
          .month = month < 10 ? month + 3 : month - 9,
          .day = day_of_year - days_before(month) + 1};
}

Day day_at(Seconds time) { return floor_of(time, kSecondsOfDay); }

int second_of_day(Seconds time) { return static_cast<int>(time - day_at(time) * kSecondsOfDay); }

int weekday_of(Day day) {
  constexpr Day kSaturday = 6; // 2000-01-01
  return static_cast<int>((day % 7 + 7 + kSaturday) % 7);
}

int days_in(std::int64_t year, int month) {
  if (month == 2) return is_leap(year) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

} // namespace jobq::core
