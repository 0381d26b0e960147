#include "core/upkeep.hpp"

#include <random>

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

using State = Upkeep::State;

constexpr Microseconds kNoon = 12 * kHour;

Upkeep started(Microseconds now = kNoon) {
  Upkeep upkeep;
  upkeep.note_start(now);
  return upkeep;
}

Upkeep up(Microseconds now = kNoon) {
  Upkeep upkeep = started(now);
  upkeep.note_up();
  return upkeep;
}

TEST(Upkeep, ADatabaseIsLookedIntoAtOnce) {
  Upkeep upkeep;
  EXPECT_EQ(upkeep.state(), State::wanted);
  EXPECT_EQ(upkeep.try_at(), 0);
  EXPECT_TRUE(upkeep.is_due(kNoon));
}

TEST(Upkeep, NothingIsDueWhileAManagerIsThereOrOnItsWay) {
  EXPECT_EQ(started().state(), State::starting);
  EXPECT_FALSE(started().is_due(kNoon + kHour));
  EXPECT_EQ(up().state(), State::up);
  EXPECT_FALSE(up().is_due(kNoon + kHour));
}

TEST(Upkeep, ADatabaseWithoutTheExtensionIsLeftAloneUntilSomebodyAsks) {
  Upkeep upkeep = started();
  upkeep.note_absence();
  EXPECT_EQ(upkeep.state(), State::absent);
  EXPECT_FALSE(upkeep.is_due(kNoon + 1000 * kHour));
  upkeep.ask();
  EXPECT_EQ(upkeep.state(), State::wanted);
  EXPECT_TRUE(upkeep.is_due(kNoon));
}

TEST(Upkeep, WhoAsksWhileOneIsStartingIsAnsweredByAnother) {
  Upkeep upkeep = started();
  upkeep.ask();
  EXPECT_EQ(upkeep.state(), State::starting);
  upkeep.note_absence();
  EXPECT_EQ(upkeep.state(), State::wanted);
  EXPECT_TRUE(upkeep.is_due(kNoon));
  upkeep.note_start(kNoon);
  upkeep.note_absence();
  EXPECT_EQ(upkeep.state(), State::absent) << "one question, one answer";
}

TEST(Upkeep, WhoAsksWhileOneIsUpIsAnsweredByAnother) {
  Upkeep upkeep = up();
  upkeep.ask();
  EXPECT_EQ(upkeep.state(), State::up);
  upkeep.note_absence();
  EXPECT_EQ(upkeep.state(), State::wanted);
}

TEST(Upkeep, WhoAskedBeforeTheStartHasBeenAnswered) {
  Upkeep upkeep;
  upkeep.ask();
  upkeep.note_start(kNoon);
  upkeep.note_absence();
  EXPECT_EQ(upkeep.state(), State::absent);
}

TEST(Upkeep, OneThatLeftAsAskedIsWantedAtOnce) {
  Upkeep upkeep = up();
  upkeep.note_failure(kNoon);
  upkeep.note_start(kNoon);
  upkeep.note_failure(kNoon);
  EXPECT_FALSE(upkeep.is_due(kNoon));
  upkeep.note_start(kNoon);
  upkeep.note_leave();
  EXPECT_TRUE(upkeep.is_due(kNoon));
  upkeep.note_start(kNoon);
  upkeep.note_failure(kNoon);
  EXPECT_TRUE(upkeep.is_due(kNoon)) << "the failures before are forgotten";
}

TEST(Upkeep, FailuresInARowAreTriedLessAndLess) {
  constexpr Microseconds kWaits[] = {0, 1, 2, 4, 8, 16, 32, 60, 60, 60};
  Upkeep upkeep;
  Microseconds now = kNoon;
  for (Microseconds wait : kWaits) {
    upkeep.note_start(now);
    upkeep.note_failure(now);
    ASSERT_EQ(upkeep.state(), State::wanted);
    ASSERT_EQ(upkeep.try_at(), now + wait * kSecond);
    if (wait > 0) {
      ASSERT_FALSE(upkeep.is_due(now + wait * kSecond - 1));
    }
    now += wait * kSecond;
    ASSERT_TRUE(upkeep.is_due(now));
  }
  for (int i = 0; i < 1000; ++i) upkeep.note_failure(now);
  EXPECT_EQ(upkeep.try_at(), now + 60 * kSecond) << "and it never overflows";
}

TEST(Upkeep, ALongLifeForgivesTheFailuresBefore) {
  Upkeep upkeep;
  for (int i = 0; i < 5; ++i) {
    upkeep.note_start(kNoon);
    upkeep.note_up();
    upkeep.note_failure(kNoon + kSecond);
  }
  EXPECT_EQ(upkeep.try_at(), kNoon + kSecond + 8 * kSecond) << "coming up alone forgives nothing";
  upkeep.note_start(kNoon);
  upkeep.note_up();
  upkeep.note_failure(kNoon + 60 * kSecond);
  EXPECT_EQ(upkeep.try_at(), kNoon + 60 * kSecond);
  upkeep.note_start(kNoon);
  upkeep.note_failure(kNoon);
  EXPECT_EQ(upkeep.try_at(), kNoon + kSecond) << "it was the first one of a new row";
}

TEST(Upkeep, ALifeSpentOnStartingIsNone) {
  Upkeep upkeep;
  for (int i = 0; i < 3; ++i) {
    upkeep.note_start(kNoon);
    upkeep.note_failure(kNoon);
  }
  upkeep.note_start(kNoon);
  upkeep.note_failure(kNoon + kHour);
  EXPECT_EQ(upkeep.try_at(), kNoon + kHour + 4 * kSecond);
}

TEST(Upkeep, WhoAsksDuringABackOffIsAnsweredAtOnce) {
  Upkeep upkeep;
  for (int i = 0; i < 4; ++i) {
    upkeep.note_start(kNoon);
    upkeep.note_failure(kNoon);
  }
  ASSERT_FALSE(upkeep.is_due(kNoon));
  upkeep.ask();
  EXPECT_TRUE(upkeep.is_due(kNoon));
}

// Whatever comes in whatever order: one who asked is never left without a look that began later.
TEST(Upkeep, NobodyAsksInVain) {
  std::mt19937 random(11);
  Upkeep upkeep;
  Microseconds now = kNoon;
  bool is_owed = true; // a look that begins after the last question
  auto is_coming = [&] {
    return upkeep.state() == State::wanted && upkeep.try_at() <= now + kHour;
  };
  for (int i = 0; i < 200'000; ++i) {
    now += std::uniform_int_distribution<Microseconds>(0, 10 * kSecond)(random);
    State before = upkeep.state();
    switch (std::uniform_int_distribution(0, 5)(random)) {
    case 0:
      upkeep.ask();
      is_owed = true;
      break;
    case 1:
      if (!upkeep.is_due(now)) break;
      upkeep.note_start(now);
      is_owed = false;
      break;
    case 2:
      if (before == State::starting) upkeep.note_up();
      break;
    case 3:
      if (before == State::starting || before == State::up) upkeep.note_absence();
      break;
    case 4:
      if (before == State::starting || before == State::up) upkeep.note_failure(now);
      break;
    default:
      if (before == State::up) upkeep.note_leave();
    }
    if (upkeep.state() == State::absent) {
      ASSERT_FALSE(is_owed) << i;
    }
    if (upkeep.state() == State::wanted) {
      ASSERT_TRUE(is_coming()) << i;
      ASSERT_LE(upkeep.try_at(), now + 60 * kSecond);
    }
  }
}

} // namespace
} // namespace jobq::core
