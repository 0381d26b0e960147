// A cron expression, read: which local times match. A set is an integer with a bit for each member.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/calendar.hpp"

namespace jobq::core {

struct Cron {
  std::uint64_t seconds = 1; // bit 0: the full minute
  std::uint64_t minutes = 0;
  std::uint32_t hours = 0;
  std::uint32_t months = 0; // bits 1 to 12

  // Days of the month.
  std::uint32_t days = 0;             // bits 1 to 31
  std::uint32_t days_before_last = 0; // bit n: n days before the month's last one (L is n = 0)
  std::uint32_t nearest_weekdays = 0; // bit n: the working day nearest to the n-th, in its month
  bool is_last_weekday = false;       // LW: the month's last working day
  // Days of the week, bit 0 is Sunday.
  std::uint32_t weekdays = 0;
  std::array<std::uint32_t, 6> nth_weekdays = {}; // [n], n from 1 to 5: the month's n-th such day
  std::uint32_t last_weekdays = 0;                // the month's last such day

  // Vixie's rule: a day matches if either field matches; if one of them begins with *, if both do.
  bool is_day_restricted_by_both = false;

  // The hour field is * or */n: the entry follows real time, not the clock on the wall.
  bool is_hourly = false;
};

// The days of a month that match, as a set: bits 1 to 31.
std::uint32_t matching_days(const Cron& cron, std::int64_t year, int month);

// Whether any date matches at all.
bool can_match(const Cron& cron);

// The first local time at or after `from` that matches; nothing if there is none in the 400 years
// after which the calendar begins anew.
std::optional<Seconds> next_match(const Cron& cron, Seconds from);

} // namespace jobq::core
