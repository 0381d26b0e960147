// Lengths of time. An SQL interval has three fields; jobq counts in microseconds alone, so an
// interval is turned into them once, at the door, by the rule written here: a day is 24 hours.
#pragma once

#include <cstdint>
#include <limits>

namespace jobq::core {

using Microseconds = std::int64_t;

inline constexpr Microseconds kSecond = 1'000'000;
inline constexpr Microseconds kHour = 3600 * kSecond;
inline constexpr Microseconds kDay = 24 * kHour;
inline constexpr Microseconds kForever = std::numeric_limits<Microseconds>::max();

// The fields of an SQL interval, as the server stores them.
struct Interval {
  std::int64_t microseconds = 0;
  std::int32_t days = 0;
  std::int32_t months = 0;
};

enum class Flaw { none, negative, months, too_long };

struct Length {
  Microseconds microseconds = 0;
  Flaw flaw = Flaw::none;
};

// Months have no fixed length and are refused; so is a field below zero, even if the sum is not.
Length length_of(const Interval& interval);

// A keep time may name months and years (30 and 365 days); 1000 years or more is kForever.
Length keep_time_of(const Interval& interval);

// Instant + length, both in microseconds; kForever if the sum is past `last` (the calendar's end).
Microseconds later(Microseconds instant, Microseconds length, Microseconds last);

} // namespace jobq::core
