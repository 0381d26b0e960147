// Hungry queues beside a set that forgets none; unit tests and a fuzzer pick the steps. Whoever is
// hungry is found so, and as long as there are few nobody else is.
#pragma once

#include "core/hunger.hpp"
#include "unit/pick.hpp"

#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace jobq::core {

class HungerModel {
 public:
  explicit HungerModel(Pick pick) : pick_(std::move(pick)) {}

  void step() {
    QueueName queue = {.database = static_cast<std::uint32_t>(pick_(1, 2)),
                       .queue_id = pick_(0, 7)};
    std::int64_t action = pick_(0, 16);
    if (action == 0)
      forget(queue.database);
    else if (action <= 8)
      take(queue);
    else
      add(queue);
    ASSERT_TRUE(hunger_.is_any() || hungry_.empty());
    ASSERT_TRUE(!hunger_.is_any() || !hungry_.empty() || was_many_);
  }

 private:
  using Name = std::pair<std::uint32_t, std::int64_t>;

  void add(QueueName queue) {
    hunger_.add(queue);
    hungry_.insert({queue.database, queue.queue_id});
    was_many_ |= hungry_.size() > Hunger::kMostKnown;
  }

  void take(QueueName queue) {
    bool was_hungry = hungry_.erase({queue.database, queue.queue_id}) == 1;
    ASSERT_EQ(hunger_.take(queue), was_hungry || was_many_);
  }

  void forget(std::uint32_t database) {
    hunger_.forget(database);
    std::erase_if(hungry_, [database](const Name& name) { return name.first == database; });
  }

  Pick pick_;
  Hunger hunger_;
  std::set<Name> hungry_;
  bool was_many_ = false; // at some time
};

} // namespace jobq::core
