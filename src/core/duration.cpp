#include "core/duration.hpp"

#include "core/pure.hpp"

namespace jobq::core {

namespace {

constexpr std::int64_t kDaysForEver = 365'000;
constexpr std::int64_t kDaysOfMonth = 30;
constexpr std::int64_t kDaysOfYear = 365;

bool is_negative(const Interval& interval) {
  return interval.microseconds < 0 || interval.days < 0 || interval.months < 0;
}

Length sum(std::int64_t days, Microseconds microseconds) {
  Microseconds of_days = 0;
  Microseconds total = 0;
  if (__builtin_mul_overflow(days, kDay, &of_days) ||
      __builtin_add_overflow(of_days, microseconds, &total))
    return {.flaw = Flaw::too_long};
  return {.microseconds = total};
}

} // namespace

Length length_of(const Interval& interval) {
  if (is_negative(interval)) return {.flaw = Flaw::negative};
  if (interval.months != 0) return {.flaw = Flaw::months};
  return sum(interval.days, interval.microseconds);
}

Length keep_time_of(const Interval& interval) {
  if (is_negative(interval)) return {.flaw = Flaw::negative};
  std::int64_t days = interval.months / 12 * kDaysOfYear + interval.months % 12 * kDaysOfMonth +
                      interval.days + interval.microseconds / kDay;
  if (days >= kDaysForEver) return {.microseconds = kForever};
  return sum(days, interval.microseconds % kDay);
}

Microseconds later(Microseconds instant, Microseconds length, Microseconds last) {
  Microseconds total = 0;
  if (__builtin_add_overflow(instant, length, &total) || total > last) return kForever;
  return total;
}

} // namespace jobq::core
