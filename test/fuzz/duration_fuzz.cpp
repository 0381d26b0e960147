#include "core/duration.hpp"

#include "fuzz/fuzz.hpp"

namespace jobq::core {
namespace {

constexpr Wide kThousandYears = Wide{365'000} * kDay;

bool is_negative(const Interval& interval) {
  return interval.microseconds < 0 || interval.days < 0 || interval.months < 0;
}

// What an interval amounts to, if its months are so many days.
Wide sum(const Interval& interval, std::int64_t days_of_months) {
  return (Wide{days_of_months} + interval.days) * kDay + interval.microseconds;
}

void hold_length(const Interval& interval) {
  Wide wide = sum(interval, 0);
  Flaw flaw = is_negative(interval)  ? Flaw::negative
              : interval.months != 0 ? Flaw::months
              : wide > kForever      ? Flaw::too_long
                                     : Flaw::none;
  Length length = length_of(interval);
  EXPECT_EQ(length.flaw, flaw);
  EXPECT_TRUE(length.microseconds == (flaw == Flaw::none ? wide : 0));
}

void hold_keep_time(const Interval& interval) {
  Length length = keep_time_of(interval);
  if (is_negative(interval)) {
    EXPECT_EQ(length.flaw, Flaw::negative);
    return;
  }
  Wide wide = sum(interval, std::int64_t{interval.months} / 12 * 365 + interval.months % 12 * 30);
  EXPECT_EQ(length.flaw, Flaw::none);
  EXPECT_TRUE(length.microseconds == (wide >= kThousandYears ? kForever : wide));
}

void hold_later(Microseconds instant, Microseconds length, Microseconds last) {
  Wide sum = Wide{instant} + length;
  EXPECT_TRUE(later(instant, length, last) == (sum > last ? kForever : sum));
}

} // namespace

void hold(Bytes& bytes) {
  const Interval interval = {.microseconds = any<std::int64_t>(bytes),
                             .days = any<std::int32_t>(bytes),
                             .months = any<std::int32_t>(bytes)};
  hold_length(interval);
  hold_keep_time(interval);
  hold_length({.microseconds = interval.microseconds, .days = interval.days});
  hold_later(any<Microseconds>(bytes), any_count<Microseconds>(bytes), any<Microseconds>(bytes));
}

} // namespace jobq::core
