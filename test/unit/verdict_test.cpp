#include "core/verdict.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace jobq::core {
namespace {

constexpr Limits kLimits = {.max_attempts = 3, .max_crashes = 2};
constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();

Verdict failed(Counters counters) { return verdict_on(Failed{counters, kLimits, true, {}}); }
Verdict expired(Counters counters) { return verdict_on(Expired{counters, kLimits, {}}); }

TEST(Verdict, FailureIsTriedAgainUntilAttemptsAreExhausted) {
  EXPECT_EQ(failed({.attempt = 2, .tries = 2}).fate, Fate::again);
  EXPECT_EQ(failed({.attempt = 3, .tries = 3}).fate, Fate::dead);
  EXPECT_EQ(failed({.attempt = 3, .tries = 3}).reason, "attempts exhausted");
}

TEST(Verdict, TriesCountNotAttempts) {
  EXPECT_EQ(failed({.attempt = 1000, .tries = 1}).fate, Fate::again);
}

TEST(Verdict, FailureThatMustNotBeRetriedIsDeath) {
  Verdict verdict = verdict_on(Failed{{.attempt = 1, .tries = 1}, kLimits, false, {}});
  EXPECT_EQ(verdict.fate, Fate::dead);
  EXPECT_FALSE(verdict.reason.empty());
}

TEST(Verdict, CrashesDoNotMakeAnOrderlyFailureDeath) {
  EXPECT_EQ(failed({.attempt = 2, .tries = 2, .crashes = 9}).fate, Fate::again);
}

TEST(Verdict, SoManyCrashesAreDeathEvenIfTriesRemain) {
  EXPECT_EQ(expired({.attempt = 1, .tries = 1, .crashes = 1}).fate, Fate::again);
  Verdict verdict = expired({.attempt = 2, .tries = 2, .crashes = 2});
  EXPECT_EQ(verdict.fate, Fate::dead);
  EXPECT_EQ(verdict.reason, "crashed 2 times");
}

TEST(Verdict, LastTryThatExpiresIsDeath) {
  Verdict verdict = expired({.attempt = 3, .tries = 3, .crashes = 1});
  EXPECT_EQ(verdict.fate, Fate::dead);
  EXPECT_EQ(verdict.reason, "attempts exhausted");
}

TEST(Verdict, ReplacedJobIsCancelledHoweverItsAttemptEnds) {
  EXPECT_EQ(verdict_on(Failed{{.tries = 1}, kLimits, true, 42}).reason, "replaced by job 42");
  EXPECT_EQ(verdict_on(Failed{{.tries = 9}, kLimits, false, 42}).fate, Fate::cancelled);
  EXPECT_EQ(verdict_on(Expired{{.tries = 9, .crashes = 9}, kLimits, 42}).fate, Fate::cancelled);
}

// Case 31: limits may have been lowered while the job stood ready.
TEST(Verdict, ReadyJobOverItsLimitsIsNotHandedOut) {
  EXPECT_EQ(verdict_on_ready({.attempt = 2, .tries = 2, .crashes = 1}, kLimits).fate, Fate::again);
  EXPECT_EQ(verdict_on_ready({.attempt = 3, .tries = 3}, kLimits).reason, "attempts exhausted");
  EXPECT_EQ(verdict_on_ready({.tries = 1, .crashes = 2}, kLimits).reason, "crashed 2 times");
}

TEST(Verdict, CountersEndWithTheJobNotByWrappingAround) {
  const Limits endless = {.max_attempts = kLast, .max_crashes = kLast};
  EXPECT_EQ(verdict_on_ready({.attempt = kLast - 1, .tries = 1}, endless).fate, Fate::again);
  EXPECT_EQ(verdict_on_ready({.attempt = kLast, .tries = 1}, endless).fate, Fate::dead);
  EXPECT_EQ(verdict_on_ready({.attempt = 1, .tries = kLast}, endless).fate, Fate::dead);
  EXPECT_EQ(after_crash({.crashes = 1}).crashes, 2);
  EXPECT_EQ(after_crash({.crashes = kLast}).crashes, kLast);
}

} // namespace
} // namespace jobq::core
