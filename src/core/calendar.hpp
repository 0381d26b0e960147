// The Gregorian calendar, reckoned from 2000-01-01 in both directions and without end: which day a
// date is. Time of day comes in seconds; what clock shows it, and where, is no business of this
// room.
#pragma once

#include <cstdint>

namespace jobq::core {

using Seconds = std::int64_t; // since 2000-01-01 00:00:00 on some clock
using Day = std::int64_t;     // since 2000-01-01

inline constexpr Seconds kSecondsOfDay = 86'400;

struct Date {
  std::int64_t year = 2000;
  int month = 1; // 1 to 12
  int day = 1;   // 1 to 31
};

Day day_of(const Date& date);
Date date_of(Day day);
// The day at that time, also before 2000; and the seconds that have passed of it.
Day day_at(Seconds time);
int second_of_day(Seconds time);

int weekday_of(Day day); // 0 is Sunday
int days_in(std::int64_t year, int month);

} // namespace jobq::core
