#include "core/instants.hpp"
#include "unit/cron_model.hpp"
#include "unit/made_zone.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr Seconds kHourOfDay = 3600;
constexpr Microseconds kFirst = std::numeric_limits<Microseconds>::min();

Seconds at(std::int64_t year, int month, int day, int hour = 0, int minute = 0) {
  return day_of({.year = year, .month = month, .day = day}) * kSecondsOfDay + hour * 3600 +
         minute * 60;
}

Timetable timetable(std::string_view text) {
  auto read = read_timetable(text);
  const Mistake* mistake = std::get_if<Mistake>(&read);
  EXPECT_FALSE(mistake) << text << ": " << mistake->message;
  return std::get<Timetable>(read);
}

Rule rule(std::string_view text, const Zone& zone = made_zone(0)) {
  return {.timetable = timetable(text), .zone = zone};
}

// The first instants after `from`, as seconds.
std::vector<Seconds> seconds_after(const Rule& rule, Seconds from, std::size_t count) {
  std::vector<Seconds> seconds;
  std::optional<Microseconds> next = from * kSecond;
  while (seconds.size() < count && (next = next_after(rule, *next)))
    seconds.push_back(*next / kSecond);
  return seconds;
}

// How many in [from, until), each on the clock of the zone.
std::int64_t count(const Rule& rule, Seconds from, Seconds until) {
  std::int64_t sum = 0;
  std::optional<Microseconds> next = next_after(rule, from * kSecond - 1);
  for (; next && *next < until * kSecond; next = next_after(rule, *next)) ++sum;
  return sum;
}

Zone new_york() {
  return made_zone(-5 * kHourOfDay, {{at(2025, 3, 9, 7), -4 * kHourOfDay},
                                     {at(2025, 11, 2, 6), -5 * kHourOfDay},
                                     {at(2026, 3, 8, 7), -4 * kHourOfDay}});
}
constexpr Seconds kWinter = 5 * kHourOfDay; // from New York's time to UTC
constexpr Seconds kSummer = 4 * kHourOfDay;

// Half an hour forward and back.
Zone lord_howe() {
  return made_zone(11 * kHourOfDay, {{at(2025, 4, 5, 15), 10 * kHourOfDay + 1800},
                                     {at(2025, 10, 4, 15, 30), 11 * kHourOfDay}});
}

Zone berlin() {
  std::vector<Change> changes;
  for (std::int64_t year = 2024; year < 2030; ++year) {
    Day march = day_of({.year = year, .month = 3, .day = 31});
    Day october = day_of({.year = year, .month = 10, .day = 31});
    changes.push_back({(march - weekday_of(march)) * kSecondsOfDay + kHourOfDay, 2 * kHourOfDay});
    changes.push_back({(october - weekday_of(october)) * kSecondsOfDay + kHourOfDay, kHourOfDay});
  }
  return made_zone(kHourOfDay, changes);
}

TEST(Instants, ATimeInAGapComesAtItsEnd) { // case 9
  EXPECT_EQ(seconds_after(rule("30 2 * * *", new_york()), at(2025, 3, 8, 12), 2),
            std::vector({at(2025, 3, 9, 3) + kSummer, at(2025, 3, 10, 2, 30) + kSummer}));
  EXPECT_EQ(seconds_after(rule("15,30,45 2,3 * * *", new_york()), at(2025, 3, 9), 2),
            std::vector({at(2025, 3, 9, 3) + kSummer, at(2025, 3, 9, 3, 15) + kSummer}))
      << "all of the gap are one";
  EXPECT_EQ(seconds_after(rule("0,30 2,3 * * *", new_york()), at(2025, 3, 9), 2),
            std::vector({at(2025, 3, 9, 3) + kSummer, at(2025, 3, 9, 3, 30) + kSummer}))
      << "and one with what is due at its end";
}

TEST(Instants, ATimeThatIsRepeatedComesInTheFirstPass) { // case 9
  EXPECT_EQ(seconds_after(rule("30 1 * * *", new_york()), at(2025, 11, 1, 12), 2),
            std::vector({at(2025, 11, 2, 1, 30) + kSummer, at(2025, 11, 3, 1, 30) + kWinter}));
  EXPECT_EQ(seconds_after(rule("30 1 * * *", new_york()), at(2025, 11, 2, 1, 10) + kWinter, 1),
            std::vector({at(2025, 11, 3, 1, 30) + kWinter}))
      << "asked in the second pass";
}

TEST(Instants, HalfHoursKeepTheirCadence) { // case 9
  const Rule every_half_hour = rule("*/30 * * * *", new_york());
  EXPECT_EQ(count(every_half_hour, at(2025, 3, 9) + kWinter, at(2025, 3, 10) + kSummer), 46);
  EXPECT_EQ(count(every_half_hour, at(2025, 11, 2) + kSummer, at(2025, 11, 3) + kWinter), 50);
  for (Seconds from : {at(2025, 3, 8), at(2025, 11, 1)}) {
    auto seconds = seconds_after(every_half_hour, from, 150);
    for (std::size_t i = 0; i < seconds.size(); ++i)
      ASSERT_EQ(seconds[i], from + 1800 * static_cast<Seconds>(i + 1));
  }
}

TEST(Instants, AnHourFieldWithoutAStarIsOnTheClock) {
  EXPECT_EQ(
      count(rule("0 0-23 * * *", new_york()), at(2025, 11, 2) + kSummer, at(2025, 11, 3) + kWinter),
      24);
  EXPECT_EQ(
      count(rule("0 * * * *", new_york()), at(2025, 11, 2) + kSummer, at(2025, 11, 3) + kWinter),
      25);
  EXPECT_EQ(
      count(rule("30 */2 * * *", new_york()), at(2025, 3, 9) + kWinter, at(2025, 3, 10) + kSummer),
      11)
      << "never in a gap";
}

TEST(Instants, HalfAnHourShift) { // case 9
  const Rule daily = rule("15 2 * * *", lord_howe());
  EXPECT_EQ(seconds_after(daily, at(2025, 10, 4), 2),
            std::vector({at(2025, 10, 4, 15, 30),
                         at(2025, 10, 5, 2, 15) + kSecondsOfDay - 11 * kHourOfDay}));
  const Rule repeated = rule("45 1 * * *", lord_howe());
  EXPECT_EQ(seconds_after(repeated, at(2025, 4, 5), 2),
            std::vector({at(2025, 4, 5, 14, 45), at(2025, 4, 6, 15, 15)}));
  EXPECT_EQ(count(rule("*/30 * * * *", lord_howe()), at(2025, 4, 5, 13), at(2025, 4, 6, 13, 30)),
            49);
}

TEST(Instants, ALostDayComesAtItsEnd) { // Apia, 2011-12-30
  const Zone apia = made_zone(-10 * kHourOfDay, {{at(2011, 12, 30, 10), 14 * kHourOfDay}});
  EXPECT_EQ(seconds_after(rule("0 9 * * *", apia), at(2011, 12, 29), 3),
            std::vector({at(2011, 12, 29, 19), at(2011, 12, 30, 10), at(2011, 12, 30, 19)}));
  EXPECT_EQ(seconds_after(rule("0 9 30 12 *", apia), at(2011, 12, 29), 2),
            std::vector({at(2011, 12, 30, 10), at(2012, 12, 29, 19)}));
  EXPECT_EQ(seconds_after(rule("0 */9 30 12 *", apia), at(2011, 12, 29), 1),
            std::vector({at(2012, 12, 29, 10)}));
}

TEST(Instants, MonthsAreNeitherSkippedNorRepeated) { // case 13
  const Rule every_second_month = rule("0 0 1 */2 *", berlin());
  std::vector<Seconds> seconds = seconds_after(every_second_month, at(2024, 1, 15), 12);
  ASSERT_EQ(seconds.size(), 12u);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    Seconds local = seconds[i] + berlin()(seconds[i]).offset;
    const Date date = date_of(day_at(local));
    EXPECT_EQ(second_of_day(local), 0);
    EXPECT_EQ(date.day, 1);
    EXPECT_EQ((date.year - 2024) * 12 + date.month, 3 + 2 * static_cast<std::int64_t>(i));
  }
}

TEST(Instants, LeapDays) { // case 8
  const Rule leap_day = rule("0 0 29 2 *");
  EXPECT_EQ(seconds_after(leap_day, at(2023, 6, 1), 2),
            std::vector({at(2024, 2, 29), at(2028, 2, 29)}));
  EXPECT_EQ(seconds_after(leap_day, at(2024, 3, 1), 1), std::vector({at(2028, 2, 29)}));
  EXPECT_EQ(seconds_after(leap_day, at(2097, 1, 1), 1), std::vector({at(2104, 2, 29)}));
}

TEST(Instants, WhatNeverComesEnds) { // case 14
  Rule never = rule("0 0 30 1,2 *");
  never.timetable.cron.months = 1u << 2;
  EXPECT_FALSE(next_after(never, 0));
  never.timetable.cron.is_hourly = true;
  EXPECT_FALSE(next_after(never, 0));
  EXPECT_FALSE(next_after(rule("@reboot"), 0));
}

// Each time that matches is in a gap.
TEST(Instants, WhatComesInGapsAloneEnds) {
  std::vector<Change> changes;
  for (Day day = 0; day < 400 * 366; day += 1) {
    changes.push_back({.at = day * kSecondsOfDay, .offset = 60});
    changes.push_back({.at = day * kSecondsOfDay + kHourOfDay, .offset = 0});
  }
  const Zone zone = [&](Seconds instant) {
    auto next = std::ranges::upper_bound(changes, instant, {}, &Change::at);
    Seconds offset = next == changes.begin() ? 0 : std::prev(next)->offset;
    return Stretch{.offset = offset, .until = next == changes.end() ? kNever : next->at};
  };
  EXPECT_FALSE(next_after(rule("0 */24 * * *", zone), 0));
  EXPECT_EQ(next_after(rule("0 0 * * *", zone), 1), kDay) << "but on the clock it comes";
}

TEST(Instants, AreAfterTheInstantHoweverCloseTo) {
  const Rule every_minute = rule("* * * * *");
  EXPECT_EQ(next_after(every_minute, -1), 0);
  EXPECT_EQ(next_after(every_minute, 0), 60 * kSecond);
  EXPECT_EQ(next_after(every_minute, 60 * kSecond - 1), 60 * kSecond);
  EXPECT_EQ(next_after(every_minute, -60 * kSecond - 1), -60 * kSecond);
  EXPECT_EQ(next_after(rule("* * * * * *"), 1), kSecond);
}

TEST(Instants, EndOfTimeIsNoTrouble) {
  for (std::string_view text : {"* * * * *", "*/7 * * * * *", "0 0 29 2 *", "30 2 * * *"}) {
    for (const Zone& zone : {made_zone(0), made_zone(-14 * 3600), made_zone(14 * 3600)}) {
      Rule forever = rule(text, zone);
      EXPECT_FALSE(next_after(forever, kForever)) << text;
      EXPECT_GT(next_after(forever, kFirst), kFirst) << text;
      EXPECT_GT(next_after(forever, kFirst + 1), kFirst) << text;
      forever.starts_at = kFirst;
      EXPECT_GT(next_after(forever, kFirst), kFirst) << text;
      forever.starts_at = kForever;
      EXPECT_FALSE(next_after(forever, kFirst)) << text;
    }
  }
  Rule often = rule("1.5 s");
  for (Microseconds phase : {kFirst, Microseconds{0}, kForever}) {
    often.phase = phase;
    EXPECT_FALSE(next_after(often, kForever));
    EXPECT_GT(next_after(often, kFirst), kFirst);
    EXPECT_LE(next_after(often, kFirst), kFirst + 1'500'000);
  }
}

TEST(Instants, KeepWithinTheirBounds) {
  for (std::string_view text : {"0 * * * *", "0 0-23 * * *", "1 hour"}) {
    Rule bounded = rule(text);
    bounded.starts_at = 5 * kHour;
    bounded.ends_at = 7 * kHour;
    EXPECT_EQ(next_after(bounded, 0), 5 * kHour) << text << ": at the bound as well";
    EXPECT_EQ(next_after(bounded, 5 * kHour), 6 * kHour) << text;
    EXPECT_EQ(next_after(bounded, 6 * kHour), 7 * kHour) << text << ": at the bound as well";
    EXPECT_FALSE(next_after(bounded, 7 * kHour)) << text;
    bounded.last = 7 * kHour - 1;
    EXPECT_FALSE(next_after(bounded, 6 * kHour)) << text;
    bounded.ends_at = 4 * kHour;
    EXPECT_FALSE(next_after(bounded, 0)) << text;
  }
}

TEST(Instants, IntervalsLieOnTheirGrid) {
  Rule every_90_minutes = rule("90 minutes", new_york());
  every_90_minutes.phase = 10 * kHour + 7;
  EXPECT_EQ(next_after(every_90_minutes, 10 * kHour), 10 * kHour + 7);
  EXPECT_EQ(next_after(every_90_minutes, 10 * kHour + 7), 11 * kHour + kHour / 2 + 7);
  EXPECT_EQ(next_after(every_90_minutes, -kHour / 2 + 7), kHour + 7) << "before the phase too";
  EXPECT_EQ(next_after(every_90_minutes, -2 * kHour + 6), -2 * kHour + 7);
}

// The clock second by second or minute by minute.
class Walk {
 public:
  Walk(const Cron& cron, const Zone& zone, Seconds step) : cron_(cron), zone_(zone), step_(step) {}

  // All in [from, until).
  std::vector<Seconds> instants(Seconds from, Seconds until) {
    Seconds begin = from - 3 * kSecondsOfDay;
    shown_ = local(begin);
    for (Seconds instant = begin; instant < from; instant += step_) show(instant);
    std::vector<Seconds> instants;
    for (Seconds instant = from; instant < until; instant += step_) {
      if (cron_.is_hourly ? matches(cron_, local(instant)) : has_reached_match(instant))
        instants.push_back(instant);
      show(instant);
    }
    return instants;
  }

 private:
  Seconds local(Seconds instant) const { return instant + zone_(instant).offset; }
  void show(Seconds instant) { shown_ = std::max(shown_, local(instant)); }
  // A time that the clock has never shown or passed before.
  bool has_reached_match(Seconds instant) const {
    for (Seconds time = shown_ + step_; time <= local(instant); time += step_)
      if (matches(cron_, time)) return true;
    return false;
  }

  const Cron& cron_;
  const Zone& zone_;
  Seconds step_;
  Seconds shown_ = 0; // the latest one
};

struct NamedZone {
  std::string name;
  Zone zone;
};

constexpr Seconds kChange = 8826 * kSecondsOfDay; // 2024-03-01 00:00 UTC

// All change around kChange.
std::vector<NamedZone> zones() {
  auto zone = [](Seconds before, Seconds at, Seconds after) {
    return made_zone(before * 60, {{kChange + at * 60, after * 60}});
  };
  return {
      {"no change", made_zone(5 * kHourOfDay + 2700)},
      {"hour forward", zone(-300, 420, -240)},
      {"hour back", zone(-240, 360, -300)},
      {"half an hour forward", zone(630, -510, 660)},
      {"half an hour back", zone(660, -540, 630)},
      {"gap at midnight", zone(-180, 180, -120)},
      {"midnight repeated", zone(-120, 120, -180)},
      {"gap across midnight", zone(0, -30, 60)},
      {"lost day", zone(-600, 600, 840)},
      {"repeated day", zone(840, 600, -600)},
      {"forward and back",
       made_zone(0, {{kChange, 2 * kHourOfDay}, {kChange + kHourOfDay / 2, -kHourOfDay}})},
      {"back and forward",
       made_zone(0, {{kChange, -2 * kHourOfDay}, {kChange + 5400, kHourOfDay}})},
      {"back and back",
       made_zone(0, {{kChange, -kHourOfDay}, {kChange + kHourOfDay / 2, -2 * kHourOfDay}})},
      {"a change without one", made_zone(0, {{kChange, 0}, {kChange + 1800, 0}})},
  };
}

NamedZone zone_at_random(const Pick& pick) {
  std::vector<Change> changes;
  Seconds at = kChange - 3 * kSecondsOfDay;
  Seconds offset = pick(-12, 12) * kHourOfDay;
  Seconds first = offset;
  for (std::int64_t count = pick(1, 8); count > 0; --count) {
    at += pick(1, 96) * 900;
    offset = std::clamp(offset + pick(-12, 12) * (pick(0, 3) == 0 ? 3600 : 900), -14 * kHourOfDay,
                        14 * kHourOfDay);
    changes.push_back({.at = at, .offset = offset});
  }
  return {"at random", made_zone(first, changes)};
}

// Each of the walk's is what comes next after the one before, and after any time between.
void expect_walk(const Rule& rule, Seconds from, Seconds until, Seconds step, const Pick& pick) {
  std::vector<Seconds> walk = Walk(rule.timetable.cron, rule.zone, step).instants(from, until);
  Seconds before = from - 1;
  for (Seconds instant : walk) {
    ASSERT_EQ(next_after(rule, before * kSecond), instant * kSecond) << "after " << before;
    ASSERT_EQ(next_after(rule, pick(before * kSecond, instant * kSecond - 1)), instant * kSecond);
    before = instant;
  }
  std::optional<Microseconds> next = next_after(rule, before * kSecond);
  ASSERT_TRUE(!next || *next >= until * kSecond) << "after " << before;
}

void expect_walks(const NamedZone& zone, int rounds, const Pick& pick) {
  for (int i = 0; i < rounds; ++i) {
    bool has_seconds = i % 8 == 0;
    std::string text = pick_cron(pick, has_seconds);
    std::optional<Cron> cron = read_if_possible(text);
    if (!cron) continue;
    SCOPED_TRACE(zone.name + ": " + text);
    const Rule rule = {.timetable = {.cron = *cron}, .zone = zone.zone};
    Seconds around = has_seconds ? 2 * kHourOfDay : 3 * kSecondsOfDay;
    Seconds from = kChange + pick(-14, 12) * kHourOfDay - around;
    expect_walk(rule, from, from + 2 * around, has_seconds ? 1 : 60, pick);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Instants, AreThoseOfAWalkThroughTheZone) {
  Pick pick = pick_at_random(9);
  for (const NamedZone& zone : zones()) {
    expect_walks(zone, 24, pick);
    if (HasFatalFailure()) return;
  }
}

TEST(Instants, AreThoseOfAWalkThroughAnyZone) {
  Pick pick = pick_at_random(10);
  for (int i = 0; i < 80 && !HasFatalFailure(); ++i) expect_walks(zone_at_random(pick), 2, pick);
}

TEST(Instants, NobodyWalksThroughTheYearsToAFarOne) {
  for (std::string_view text : {"0 0 29 2 */7", "0 */23 29 2 */7"}) {
    int calls = 0;
    const Rule rare = rule(text, [&](Seconds instant) {
      ++calls;
      return Stretch{.offset = 3600, .until = (day_at(instant) / 100 + 1) * 100 * kSecondsOfDay};
    });
    EXPECT_EQ(seconds_after(rare, at(2088, 3, 1), 1), std::vector({at(2128, 2, 28, 23)})) << text;
    EXPECT_LT(calls, 10) << text;
  }
}

// From far away no repeated time is leapt over.
TEST(Instants, AFarMatchLeapsOverNoRepeatedOne) {
  const Zone zone = made_zone(0, {{kChange, -2 * kHourOfDay}});
  const Rule yearly = rule("30 */23 29 2 *", zone);
  std::vector<Seconds> expected = {kChange - kSecondsOfDay + 1800, kChange - 1800, kChange + 5400};
  EXPECT_EQ(seconds_after(yearly, at(2021, 1, 1), 3), expected);
}

} // namespace
} // namespace jobq::core
