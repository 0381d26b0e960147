#include "core/instants.hpp"

#include <algorithm>

#include "core/pure.hpp"

namespace jobq::core {

namespace {

constexpr Seconds kLongestOffset = kSecondsOfDay;   // see Zone
constexpr Seconds kCycle = 146'097 * kSecondsOfDay; // the 400 years after which nothing new comes

// The whole second that has begun.
Seconds second_at(Microseconds instant) {
  return instant / kSecond - (instant % kSecond < 0 ? 1 : 0);
}

// The first instant in stretches that match. `last` bounds the walk.
std::optional<Seconds> next_in_stretches(const Cron& cron, const Zone& zone, Seconds from,
                                         Seconds last) {
  while (from <= last) {
    const Stretch stretch = zone(from);
    std::optional<Seconds> match = next_match(cron, from + stretch.offset);
    if (!match) return std::nullopt;
    Seconds instant = *match - stretch.offset;
    if (instant < stretch.until) return instant;
    // Two days on, the clock shows nothing again that it has shown by now; from there until it can
    // show the match, none is left out.
    bool is_far = stretch.until - from >= 2 * kLongestOffset;
    from = is_far ? std::max(stretch.until, *match - kLongestOffset) : stretch.until;
  }
  return std::nullopt;
}

// The latest time that the clock has shown by then: another one than now if it was put back.
Seconds latest_shown(const Zone& zone, Seconds instant) {
  Seconds begin = instant - 2 * kLongestOffset; // what it showed before is past in any case
  Stretch stretch = zone(begin);
  Seconds latest = begin + stretch.offset;
  while (stretch.until <= instant) {
    latest = std::max(latest, stretch.until - 1 + stretch.offset);
    stretch = zone(stretch.until);
  }
  return std::max(latest, instant + stretch.offset);
}

// The first instant at which the clock has reached that time; not before `from`.
Seconds reached_at(const Zone& zone, Seconds local, Seconds from) {
  Seconds instant = std::max(from, local - kLongestOffset);
  Stretch stretch = zone(instant);
  while (stretch.until + stretch.offset <= local) {
    instant = stretch.until;
    stretch = zone(instant);
  }
  return std::max(instant, local - stretch.offset);
}

std::optional<Seconds> next_on_clock(const Cron& cron, const Zone& zone, Seconds from,
                                     Seconds last) {
  std::optional<Seconds> match = next_match(cron, latest_shown(zone, from - 1) + 1);
  if (!match || *match - kLongestOffset > last) return std::nullopt;
  return reached_at(zone, *match, from);
}

std::optional<Microseconds> next_of_cron(const Rule& rule, Microseconds instant,
                                         Microseconds last) {
  const Cron& cron = rule.timetable.cron;
  Seconds from = second_at(instant) + 1;
  Seconds last_second = std::min(second_at(last), from + kCycle);
  if (from > last_second) return std::nullopt;
  std::optional<Seconds> next = cron.is_hourly
                                    ? next_in_stretches(cron, rule.zone, from, last_second)
                                    : next_on_clock(cron, rule.zone, from, last_second);
  if (!next || *next > last_second) return std::nullopt;
  return *next * kSecond;
}

std::optional<Microseconds> next_of_interval(Microseconds interval, Microseconds phase,
                                             Microseconds instant, Microseconds last) {
  Microseconds distance = (phase % interval - instant % interval) % interval;
  if (distance <= 0) distance += interval;
  Microseconds next = 0;
  if (__builtin_add_overflow(instant, distance, &next) || next > last) return std::nullopt;
  return next;
}

} // namespace

std::optional<Microseconds> next_after(const Rule& rule, Microseconds instant) {
  constexpr Microseconds kFirst = std::numeric_limits<Microseconds>::min();
  Microseconds last = std::min(rule.last, rule.ends_at.value_or(kForever));
  if (rule.starts_at && *rule.starts_at > kFirst) instant = std::max(instant, *rule.starts_at - 1);
  switch (rule.timetable.kind) {
  case Timetable::Kind::cron:
    return next_of_cron(rule, instant, last);
  case Timetable::Kind::interval:
    return next_of_interval(rule.timetable.interval, rule.phase, instant, last);
  case Timetable::Kind::reboot:
    break;
  }
  return std::nullopt;
}

} // namespace jobq::core
