#include "core/due.hpp"
#include "unit/pick.hpp"

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr Microseconds kNoon = 12 * kHour;
constexpr Microseconds kMinute = 60 * kSecond;

Rule every(Microseconds interval) {
  return {.timetable = {.kind = Timetable::Kind::interval, .interval = interval}};
}

Rule cron(std::string_view text) {
  return {.timetable = std::get<Timetable>(read_timetable(text)),
          .zone = [](Seconds) { return Stretch{.offset = 0, .until = kNever}; }};
}

// All instants one by one, and then the policy.
Due plain_due(const Rule& rule, Microseconds handled_until, const Moment& moment,
              CatchUp catch_up) {
  Due due = {.handled_until = handled_until};
  std::vector<Microseconds> late;
  std::vector<Microseconds> punctual;
  std::optional<Microseconds> next = next_after(rule, handled_until);
  for (; next && *next <= moment.now; next = next_after(rule, *next)) {
    bool is_late = *next < moment.undisturbed_since || moment.now - *next > kPunctual;
    (is_late ? late : punctual).push_back(*next);
    due.handled_until = *next;
  }
  due.next = next;
  for (std::size_t i = 0; i < late.size(); ++i) {
    std::size_t after = late.size() - 1 - i;
    bool fires = catch_up == CatchUp::all || (catch_up == CatchUp::once && after == 0);
    if (after >= kMostCaughtUp)
      due.long_missed = Due::Span{.first = late[0], .last = late[i]};
    else
      (fires ? due.firing : due.missed).push_back(late[i]);
  }
  due.firing.insert(due.firing.end(), punctual.begin(), punctual.end());
  return due;
}

void expect_same(const Due& due, const Due& plain) {
  ASSERT_EQ(due.long_missed.has_value(), plain.long_missed.has_value());
  if (due.long_missed) {
    ASSERT_EQ(due.long_missed->first, plain.long_missed->first);
    ASSERT_EQ(due.long_missed->last, plain.long_missed->last);
  }
  ASSERT_EQ(due.missed, plain.missed);
  ASSERT_EQ(due.firing, plain.firing);
  ASSERT_EQ(due.handled_until, plain.handled_until);
  ASSERT_EQ(due.next, plain.next);
}

using Instants = std::vector<Microseconds>;

TEST(Due, NothingIsDueBeforeItsTime) {
  Due due = due_instants(every(kHour), kNoon, {.now = kNoon + kHour - 1}, CatchUp::all);
  EXPECT_TRUE(due.firing.empty());
  EXPECT_TRUE(due.missed.empty());
  EXPECT_FALSE(due.long_missed);
  EXPECT_EQ(due.handled_until, kNoon);
  EXPECT_EQ(due.next, kNoon + kHour);
}

TEST(Due, WhatHasJustComeFires) {
  for (CatchUp catch_up : {CatchUp::none, CatchUp::once, CatchUp::all}) {
    Due due = due_instants(every(kHour), kNoon, {.now = kNoon + kHour + kPunctual}, catch_up);
    EXPECT_EQ(due.firing, Instants{kNoon + kHour});
    EXPECT_EQ(due.handled_until, kNoon + kHour);
    EXPECT_EQ(due.next, kNoon + 2 * kHour);
  }
}

TEST(Due, ALateOneGoesByThePolicy) {
  const Moment moment = {.now = kNoon + kHour + kPunctual + 1};
  EXPECT_EQ(due_instants(every(kHour), kNoon, moment, CatchUp::none).missed,
            Instants{kNoon + kHour});
  EXPECT_EQ(due_instants(every(kHour), kNoon, moment, CatchUp::once).firing,
            Instants{kNoon + kHour});
  EXPECT_EQ(due_instants(every(kHour), kNoon, moment, CatchUp::all).firing,
            Instants{kNoon + kHour});
}

TEST(Due, WhatCameBeforeTheServerWasThereIsLateHoweverShort) {
  const Moment moment = {.now = kNoon + kSecond, .undisturbed_since = kNoon + 1};
  Due due = due_instants(every(kHour), kNoon - kHour, moment, CatchUp::none);
  EXPECT_EQ(due.missed, Instants{kNoon});
  EXPECT_TRUE(due.firing.empty());
}

TEST(Due, AtTheInstantTheServerCameItIsPunctual) {
  const Moment moment = {.now = kNoon + kSecond, .undisturbed_since = kNoon};
  EXPECT_EQ(due_instants(every(kHour), kNoon - kHour, moment, CatchUp::none).firing,
            Instants{kNoon});
}

TEST(Due, OnceFiresTheLastLateOneAndWhatIsPunctual) {
  const Moment moment = {.now = kNoon, .undisturbed_since = kNoon - 2 * kSecond};
  Due due = due_instants(every(kSecond), kNoon - 5 * kSecond, moment, CatchUp::once);
  EXPECT_EQ(due.missed, Instants({kNoon - 4 * kSecond}));
  EXPECT_EQ(due.firing,
            Instants({kNoon - 3 * kSecond, kNoon - 2 * kSecond, kNoon - kSecond, kNoon}));
}

TEST(Due, ThreeDaysOfMinutesAreOneSpanAndAHundred) { // case 11
  const Moment moment = {.now = kNoon + 3 * kDay, .undisturbed_since = kNoon + 3 * kDay + 1};
  Due due = due_instants(cron("* * * * *"), kNoon, moment, CatchUp::once);
  ASSERT_TRUE(due.long_missed);
  EXPECT_EQ(due.long_missed->first, kNoon + kMinute);
  EXPECT_EQ(due.long_missed->last, kNoon + 3 * kDay - 100 * kMinute);
  EXPECT_EQ(due.missed.size(), 99u);
  EXPECT_EQ(due.firing, Instants{kNoon + 3 * kDay});
  EXPECT_EQ(due.next, kNoon + 3 * kDay + kMinute);
}

TEST(Due, YearsOfSecondsAreNotWalkedThrough) {
  int zone_calls = 0;
  Rule rule = cron("* * * * * *");
  rule.zone = [&](Seconds) {
    ++zone_calls;
    return Stretch{.offset = 0, .until = kNever};
  };
  Due due = due_instants(rule, kNoon, {.now = kNoon + 3650 * kDay}, CatchUp::all);
  EXPECT_EQ(due.firing.size(), 110u + 1);
  EXPECT_EQ(due.long_missed->first, kNoon + kSecond);
  EXPECT_EQ(due.long_missed->last, due.firing.front() - kSecond);
  EXPECT_LT(zone_calls, 10'000);
}

// An instant that was handled by a clock ahead of this one.
TEST(Due, WhatIsHandledIsNotDueAgain) {
  Due due = due_instants(every(kHour), kNoon + kDay, {.now = kNoon}, CatchUp::all);
  EXPECT_TRUE(due.firing.empty());
  EXPECT_EQ(due.handled_until, kNoon + kDay);
  EXPECT_EQ(due.next, kNoon + kDay + kHour);
}

TEST(Due, AScheduleThatHasEndedHasNoNext) {
  Rule rule = every(kHour);
  rule.ends_at = kNoon;
  Due due = due_instants(rule, kNoon - kHour, {.now = kNoon}, CatchUp::once);
  EXPECT_EQ(due.firing, Instants{kNoon});
  EXPECT_FALSE(due.next);
}

TEST(Due, IsWhatAWalkThroughAllOfThemFinds) {
  const std::string_view crons[] = {"* * * * * *", "*/7 * * * * *", "* * * * *",   "*/5 9 * * *",
                                    "0 0 * * *",   "0 12 1 * *",    "* * * 1 1 *", "@reboot"};
  Pick pick = pick_at_random(11);
  for (int i = 0; i < 400 && !HasFatalFailure(); ++i) {
    bool is_cron = pick(0, 3) != 0;
    Rule rule = is_cron ? cron(crons[pick(0, 7)]) : every(pick(kSecond, kMinute));
    rule.phase = pick(-kDay, kDay);
    Microseconds from = pick(-kDay, kDay);
    Microseconds away = pick(-kSecond, pick(0, 1) == 0 ? 20 * kSecond : kHour / 4);
    if (pick(0, 5) == 0) away = pick(0, is_cron ? kHour : kDay);
    const Moment moment = {.now = from + away, .undisturbed_since = from + pick(-kHour, kHour)};
    CatchUp catch_up = static_cast<CatchUp>(pick(0, 2));
    expect_same(due_instants(rule, from, moment, catch_up),
                plain_due(rule, from, moment, catch_up));
  }
}

} // namespace
} // namespace jobq::core
