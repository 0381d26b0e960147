// Queues whose listeners are to be told of the next job: a few exactly, and if there are more, all
// of them for good. That costs calls that nobody needs, and never lacks one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/waiters.hpp"

namespace jobq::core {

class Hunger {
 public:
  static constexpr std::size_t kMostKnown = 4;

  bool is_any() const { return count_ > 0 || is_every_; }

  void add(QueueName queue) {
    if (has(queue)) return;
    if (count_ == kMostKnown)
      is_every_ = true;
    else
      known_[count_++] = queue;
  }

  // Whether the queue was hungry; it is not from here on, if that is known exactly.
  bool take(QueueName queue) {
    auto place = std::remove(known_.begin(), end(), queue);
    bool had = place != end();
    count_ = static_cast<std::uint32_t>(place - known_.begin());
    return had || is_every_;
  }

  void forget(std::uint32_t database) {
    auto place = std::remove_if(known_.begin(), end(), [database](const QueueName& queue) {
      return queue.database == database;
    });
    count_ = static_cast<std::uint32_t>(place - known_.begin());
  }

 private:
  std::array<QueueName, kMostKnown>::iterator end() { return known_.begin() + count_; }
  bool has(QueueName queue) { return std::find(known_.begin(), end(), queue) != end(); }

  std::array<QueueName, kMostKnown> known_;
  std::uint32_t count_ = 0;
  bool is_every_ = false;
};

} // namespace jobq::core
