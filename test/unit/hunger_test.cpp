#include "core/hunger.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace jobq::core {
namespace {

QueueName queue(std::uint32_t database, std::int64_t queue_id) {
  return {.database = database, .queue_id = queue_id};
}

TEST(Hunger, KnowsAQueueUntilItIsTaken) {
  Hunger hunger;
  EXPECT_FALSE(hunger.is_any());
  hunger.add(queue(1, 7));
  hunger.add(queue(1, 7));
  EXPECT_TRUE(hunger.is_any());
  EXPECT_FALSE(hunger.take(queue(1, 8)));
  EXPECT_FALSE(hunger.take(queue(2, 7)));
  EXPECT_TRUE(hunger.take(queue(1, 7)));
  EXPECT_FALSE(hunger.take(queue(1, 7)));
  EXPECT_FALSE(hunger.is_any());
}

TEST(Hunger, ForgetsADatabaseAndNoOther) {
  Hunger hunger;
  hunger.add(queue(1, 7));
  hunger.add(queue(2, 7));
  hunger.add(queue(1, 8));
  hunger.forget(1);
  EXPECT_FALSE(hunger.take(queue(1, 7)));
  EXPECT_FALSE(hunger.take(queue(1, 8)));
  EXPECT_TRUE(hunger.take(queue(2, 7)));
}

TEST(Hunger, OfTooManyEveryQueueIsHungry) {
  Hunger hunger;
  for (std::int64_t id = 1; id <= 5; ++id) hunger.add(queue(1, id));
  for (std::int64_t id = 1; id <= 9; ++id) EXPECT_TRUE(hunger.take(queue(1, id)));
  EXPECT_TRUE(hunger.is_any());
}

// Against a set that forgets nothing: whoever is hungry is found so, and as long as there are few
// nobody else is.
TEST(Hunger, LacksNoQueue) {
  std::mt19937 random(20261130);
  for (int round = 0; round < 200; ++round) {
    Hunger hunger;
    std::set<std::int64_t> hungry;
    bool was_many = false;
    for (int step = 0; step < 200; ++step) {
      auto id = static_cast<std::int64_t>(random() % 8);
      if (random() % 2 == 0) {
        hunger.add(queue(1, id));
        hungry.insert(id);
        was_many |= hungry.size() > Hunger::kMostKnown;
      } else {
        bool had = hunger.take(queue(1, id));
        if (hungry.erase(id) == 1 || was_many)
          ASSERT_TRUE(had);
        else
          ASSERT_FALSE(had);
      }
      ASSERT_TRUE(hunger.is_any() || hungry.empty());
    }
  }
}

} // namespace
} // namespace jobq::core
