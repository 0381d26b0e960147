#include "core/waiters.hpp"
#include "unit/waiters_model.hpp"

#include <optional>
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

class Model : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Model, AgreesWithTheOracle) {
  constexpr int kSteps = 50'000;
  WaitersModel model(pick_at_random(GetParam()));
  for (int i = 0; i < kSteps && !HasFatalFailure(); ++i) {
    model.step();
    if (!HasFatalFailure()) model.check();
  }
  EXPECT_GT(model.taken(), kSteps / 100);
  EXPECT_GT(model.returned(), kSteps / 100);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Model, testing::Values(1U, 2U, 3U, 4U));

} // namespace
} // namespace jobq::core
