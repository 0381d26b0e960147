// What the line of sleepers does, step for step beside an oracle; unit tests and a fuzzer pick the
// steps.
#pragma once

#include "core/waiters.hpp"
#include "unit/pick.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace jobq::core {

// The same, kept in the plainest way.
struct PlainLine {
  struct Place {
    std::int32_t process;
    std::uint32_t database;
    std::vector<std::int64_t> queues;
    std::optional<QueueName> token;
  };
  std::deque<Place> places;

  Place* of(std::int32_t process) {
    for (Place& place : places)
      if (place.process == process) return &place;
    return nullptr;
  }
  std::vector<std::int32_t> grant(QueueName queue, std::int64_t most) {
    std::vector<std::int32_t> woken;
    for (Place& place : places) {
      if (static_cast<std::int64_t>(woken.size()) == most) break;
      bool waits = std::count(place.queues.begin(), place.queues.end(), queue.queue_id) > 0;
      if (place.token || place.database != queue.database || !waits) continue;
      place.token = queue;
      woken.push_back(place.process);
    }
    return woken;
  }
  std::optional<QueueName> leave(std::int32_t process) {
    for (auto place = places.begin(); place != places.end(); ++place) {
      if (place->process != process) continue;
      std::optional<QueueName> token = place->token;
      places.erase(place);
      return token;
    }
    return std::nullopt;
  }
};

class WaitersModel {
 public:
  explicit WaitersModel(Pick pick) : pick_(std::move(pick)) {}

  void step() {
    std::int32_t process = pick_process();
    switch (pick_(0, 9)) {
    case 0:
    case 1:
    case 2:
      if (oracle_.of(process) == nullptr) return come(process);
      return take(process);
    case 3:
    case 4:
      return take(process);
    case 5:
    case 6:
      return go(process);
    case 7:
      if (pick_(0, 20) == 0) return give_all(pick_database());
      [[fallthrough]];
    default:
      return give({.database = pick_database(), .queue_id = pick_(0, 3)}, pick_(0, 4));
    }
  }

  // The list forwards and backwards is the oracle's, and no token is made or lost.
  void check() {
    std::vector<std::int32_t> order;
    std::int32_t before = kNobody;
    std::int64_t in_hand = 0;
    for (std::int32_t at = line_.first; at != kNobody;
         at = waiters_[static_cast<std::size_t>(at)].behind) {
      const Waiter& waiter = waiters_[static_cast<std::size_t>(at)];
      ASSERT_TRUE(waiter.is_waiting);
      ASSERT_EQ(waiter.before, before);
      in_hand += waiter.has_token ? 1 : 0;
      order.push_back(at);
      ASSERT_LE(order.size(), static_cast<std::size_t>(kProcesses));
      before = at;
    }
    ASSERT_EQ(line_.last, before);
    std::vector<std::int32_t> expected;
    for (const PlainLine::Place& place : oracle_.places) expected.push_back(place.process);
    ASSERT_EQ(order, expected);
    ASSERT_EQ(given_, taken_ + returned_ + in_hand);
  }

  std::int64_t taken() const { return taken_; }
  std::int64_t returned() const { return returned_; }

 private:
  static constexpr std::int32_t kProcesses = 12;

  std::int32_t pick_process() { return static_cast<std::int32_t>(pick_(0, kProcesses - 1)); }
  std::uint32_t pick_database() { return static_cast<std::uint32_t>(pick_(1, 2)); }

  void come(std::int32_t process) {
    std::vector<std::int64_t> queues(static_cast<std::size_t>(pick_(1, 3)));
    for (std::int64_t& queue : queues) queue = pick_(0, 3);
    std::uint32_t database = pick_database();
    join(line_, waiters_, process, database, queues);
    oracle_.places.push_back({process, database, queues, std::nullopt});
  }

  void give(QueueName queue, std::int64_t most) {
    std::vector<std::int32_t> woken;
    std::int64_t granted = grant(line_, waiters_, queue, most,
                                 [&](std::int32_t process) { woken.push_back(process); });
    ASSERT_EQ(woken, oracle_.grant(queue, most));
    ASSERT_EQ(granted, static_cast<std::int64_t>(woken.size()));
    given_ += granted;
  }

  void give_all(std::uint32_t database) {
    std::vector<std::int32_t> woken;
    grant_all(line_, waiters_, database, [&](std::int32_t process) { woken.push_back(process); });
    std::vector<std::int32_t> expected;
    for (PlainLine::Place& place : oracle_.places) {
      if (place.token || place.database != database) continue;
      place.token = QueueName{.database = database, .queue_id = place.queues[0]};
      expected.push_back(place.process);
    }
    ASSERT_EQ(woken, expected);
    given_ += static_cast<std::int64_t>(woken.size());
  }

  // As doors does: the token goes to the next one who waits for that queue.
  void go(std::int32_t process) {
    std::optional<QueueName> token = leave(line_, waiters_, process);
    ASSERT_EQ(token, oracle_.leave(process));
    if (!token) return;
    ++returned_;
    give(*token, 1);
  }

  void take(std::int32_t process) {
    PlainLine::Place* place = oracle_.of(process);
    bool had = take_token(waiters_, process);
    ASSERT_EQ(had, place != nullptr && place->token.has_value());
    if (!had) return;
    place->token.reset();
    ++taken_;
  }

  Pick pick_;
  Sleepers line_;
  std::vector<Waiter> waiters_ = std::vector<Waiter>(kProcesses);
  PlainLine oracle_;
  std::int64_t given_ = 0;
  std::int64_t taken_ = 0;
  std::int64_t returned_ = 0;
};

} // namespace jobq::core
