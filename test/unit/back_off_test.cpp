#include "core/back_off.hpp"

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

TEST(BackOff, DoublesWithEachTry) {
  const BackOff back_off = {.base = 5 * kSecond, .cap = kHour};
  EXPECT_EQ(back_off_after(back_off, 1, 0), 5 * kSecond);
  EXPECT_EQ(back_off_after(back_off, 2, 0), 10 * kSecond);
  EXPECT_EQ(back_off_after(back_off, 5, 0), 80 * kSecond);
}

TEST(BackOff, StopsAtTheCap) {
  const BackOff back_off = {.base = 5 * kSecond, .cap = kHour};
  EXPECT_EQ(back_off_after(back_off, 10, 0), 2560 * kSecond);
  EXPECT_EQ(back_off_after(back_off, 11, 0), kHour);
  EXPECT_EQ(back_off_after({.base = kDay, .cap = kHour}, 1, 0), kHour);
}

TEST(BackOff, JitterAddsUpToATenth) {
  const BackOff back_off = {.base = 100, .cap = 1000};
  EXPECT_EQ(back_off_after(back_off, 1, 0.5), 105);
  EXPECT_LE(back_off_after(back_off, 1, 0.999999), 110);
}

TEST(BackOff, NoTriesAndNoBaseAreNoTrouble) {
  EXPECT_EQ(back_off_after({.base = 7, .cap = 100}, 0, 0), 7);
  EXPECT_EQ(back_off_after({.base = 0, .cap = 100}, 2'000'000'000, 0.9), 0);
  EXPECT_EQ(back_off_after({.base = 7, .cap = 0}, 3, 0.9), 0);
}

// Case 157: tries of any size, base and cap of any length.
TEST(BackOff, NeverOverflows) {
  for (Microseconds base : {Microseconds{1}, kSecond, kDay, kForever / 2, kForever})
    for (Microseconds cap : {Microseconds{1}, kDay, kForever - 1, kForever}) {
      Microseconds before = 0;
      for (std::int32_t tries = 1; tries <= 10'000; ++tries) {
        Microseconds wait = back_off_after({.base = base, .cap = cap}, tries, 0);
        ASSERT_GE(wait, before);
        ASSERT_LE(wait, cap);
        before = wait;
      }
      EXPECT_GE(back_off_after({.base = base, .cap = cap}, 10'000, 0.99), before);
    }
}

} // namespace
} // namespace jobq::core
