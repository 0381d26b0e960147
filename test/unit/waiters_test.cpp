#include "core/waiters.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr std::uint32_t kHere = 5;
constexpr std::uint32_t kElsewhere = 6;
constexpr std::int64_t kMail = 11;
constexpr std::int64_t kPrint = 12;

class Line : public testing::Test {
 protected:
  void come(std::int32_t process, std::vector<std::int64_t> queues,
            std::uint32_t database = kHere) {
    join(line_, waiters_, process, database, queues);
  }
  std::vector<std::int32_t> give(std::int64_t queue, std::int64_t most,
                                 std::uint32_t database = kHere) {
    std::vector<std::int32_t> woken;
    std::int64_t granted = grant(line_, waiters_, {.database = database, .queue_id = queue}, most,
                                 [&](std::int32_t process) { woken.push_back(process); });
    EXPECT_EQ(granted, static_cast<std::int64_t>(woken.size()));
    return woken;
  }
  std::vector<std::int32_t> give_all(std::uint32_t database = kHere) {
    std::vector<std::int32_t> woken;
    grant_all(line_, waiters_, database, [&](std::int32_t process) { woken.push_back(process); });
    return woken;
  }

  using Woken = std::vector<std::int32_t>;

  Sleepers line_;
  std::vector<Waiter> waiters_ = std::vector<Waiter>(8);
};

TEST_F(Line, NobodyIsWokenInAnEmptyOne) {
  EXPECT_EQ(give(kMail, 3), Woken{});
  EXPECT_EQ(give_all(), Woken{});
}

TEST_F(Line, WhoCameFirstIsWokenFirst) {
  come(4, {kMail});
  come(2, {kMail});
  come(7, {kMail});
  EXPECT_EQ(give(kMail, 2), (Woken{4, 2}));
  EXPECT_EQ(give(kMail, 2), Woken{7});
  EXPECT_EQ(give(kMail, 2), Woken{});
}

TEST_F(Line, OneWhoIsAwakeIsNotWokenAgainBeforeItTakesItsToken) {
  come(4, {kMail});
  EXPECT_EQ(give(kMail, 1), Woken{4});
  EXPECT_EQ(give(kMail, 1), Woken{});
  EXPECT_TRUE(take_token(waiters_, 4));
  EXPECT_FALSE(take_token(waiters_, 4));
  EXPECT_EQ(give(kMail, 1), Woken{4});
}

TEST_F(Line, OnlyThoseWhoWaitForTheQueueOfTheDatabaseAreWoken) {
  come(1, {kPrint});
  come(2, {kMail}, kElsewhere);
  come(3, {kPrint, kMail});
  come(4, {kMail});
  EXPECT_EQ(give(kMail, 9), (Woken{3, 4}));
  EXPECT_EQ(give(kPrint, 9, kElsewhere), Woken{});
}

TEST_F(Line, NoJobWakesNobody) {
  come(1, {kMail});
  EXPECT_EQ(give(kMail, 0), Woken{});
}

TEST_F(Line, AllOfADatabaseAreWokenAtOnce) {
  come(1, {kPrint});
  come(2, {kMail}, kElsewhere);
  come(3, {kMail});
  give(kMail, 1);
  EXPECT_EQ(give_all(), Woken{1});
  EXPECT_EQ(leave(line_, waiters_, 1), (QueueName{.database = kHere, .queue_id = kPrint}));
}

TEST_F(Line, WhoLeavesWithATokenPassesItOn) {
  come(1, {kPrint, kMail});
  come(2, {kMail});
  EXPECT_EQ(leave(line_, waiters_, 2), std::nullopt);
  give(kMail, 1);
  EXPECT_EQ(leave(line_, waiters_, 1), (QueueName{.database = kHere, .queue_id = kMail}));
  EXPECT_EQ(leave(line_, waiters_, 1), std::nullopt);
}

TEST_F(Line, WhoIsNotThereMayLeaveAndHasNoToken) {
  EXPECT_EQ(leave(line_, waiters_, 3), std::nullopt);
  EXPECT_FALSE(take_token(waiters_, 3));
}

TEST_F(Line, WhoComesAgainStandsAtTheEndWithoutAToken) {
  come(1, {kMail});
  come(2, {kMail});
  give(kMail, 1);
  leave(line_, waiters_, 1);
  come(1, {kMail});
  EXPECT_EQ(give(kMail, 2), (Woken{2, 1}));
}

TEST_F(Line, NoMoreQueuesAreKeptThanThereIsRoomFor) {
  std::vector<std::int64_t> queues(kMostAwaited + 10);
  for (std::size_t i = 0; i < queues.size(); ++i) queues[i] = static_cast<std::int64_t>(i);
  come(1, queues);
  EXPECT_EQ(give(kMostAwaited - 1, 1), Woken{1});
  take_token(waiters_, 1);
  EXPECT_EQ(give(kMostAwaited, 1), Woken{});
}

// The same, kept in the plainest way.
struct Oracle {
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

class Model : public testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr std::int32_t kProcesses = 12;

  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  std::int32_t pick_process() { return static_cast<std::int32_t>(pick(0, kProcesses - 1)); }
  std::uint32_t pick_database() { return static_cast<std::uint32_t>(pick(1, 2)); }

  void come(std::int32_t process) {
    std::vector<std::int64_t> queues(static_cast<std::size_t>(pick(1, 3)));
    for (std::int64_t& queue : queues) queue = pick(0, 3);
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
    for (Oracle::Place& place : oracle_.places) {
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
    Oracle::Place* place = oracle_.of(process);
    bool had = take_token(waiters_, process);
    ASSERT_EQ(had, place != nullptr && place->token.has_value());
    if (!had) return;
    place->token.reset();
    ++taken_;
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
    for (const Oracle::Place& place : oracle_.places) expected.push_back(place.process);
    ASSERT_EQ(order, expected);
    ASSERT_EQ(given_, taken_ + returned_ + in_hand);
  }

  void step() {
    std::int32_t process = pick_process();
    switch (pick(0, 9)) {
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
      if (pick(0, 20) == 0) return give_all(pick_database());
      [[fallthrough]];
    default:
      return give({.database = pick_database(), .queue_id = pick(0, 3)}, pick(0, 4));
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps && !HasFatalFailure(); ++i) {
      step();
      if (!HasFatalFailure()) check();
    }
    EXPECT_GT(taken_, steps / 100);
    EXPECT_GT(returned_, steps / 100);
  }

  std::mt19937 random_{GetParam()};
  Sleepers line_;
  std::vector<Waiter> waiters_ = std::vector<Waiter>(kProcesses);
  Oracle oracle_;
  std::int64_t given_ = 0;
  std::int64_t taken_ = 0;
  std::int64_t returned_ = 0;
};

TEST_P(Model, AgreesWithTheOracle) { run(50'000); }

INSTANTIATE_TEST_SUITE_P(Seeds, Model, testing::Values(1U, 2U, 3U, 4U));

} // namespace
} // namespace jobq::core
