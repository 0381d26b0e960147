#include "core/hunger.hpp"
#include "unit/hunger_model.hpp"

#include <gtest/gtest.h>

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

TEST(Hunger, LacksNoQueue) {
  Pick pick = pick_at_random(20261130);
  for (int round = 0; round < 200; ++round) {
    HungerModel model(pick);
    for (int i = 0; i < 200 && !HasFatalFailure(); ++i) model.step();
  }
}

} // namespace
} // namespace jobq::core
