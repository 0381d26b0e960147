#include "core/tokens.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace jobq::core {
namespace {

using Ids = std::vector<std::int64_t>;
using Attempts = std::vector<std::int32_t>;
using Positions = std::vector<std::size_t>;

TEST(Tokens, NoneMakeNoGroup) { EXPECT_TRUE(group_tokens(Ids{}, Attempts{}).empty()); }

TEST(Tokens, GroupsAscendByAttemptThenJob) {
  auto groups = group_tokens(Ids{30, 10, 20, 5}, Attempts{1, 2, 1, 2});
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].attempt, 1);
  EXPECT_EQ(groups[0].job_ids, (Ids{20, 30}));
  EXPECT_EQ(groups[0].positions, (Positions{2, 0}));
  EXPECT_EQ(groups[1].attempt, 2);
  EXPECT_EQ(groups[1].job_ids, (Ids{5, 10}));
  EXPECT_EQ(groups[1].positions, (Positions{3, 1}));
}

TEST(Tokens, TokenNamedTwiceCountsOnceWhereItWasNamedFirst) {
  auto groups = group_tokens(Ids{7, 8, 7}, Attempts{1, 1, 1});
  ASSERT_EQ(groups.size(), 1);
  EXPECT_EQ(groups[0].job_ids, (Ids{7, 8}));
  EXPECT_EQ(groups[0].positions, (Positions{0, 1}));
}

TEST(Tokens, OneJobWithTwoAttemptsIsTwoTokens) {
  EXPECT_EQ(group_tokens(Ids{7, 7}, Attempts{1, 2}).size(), 2);
}

// Batches in any order work off the tokens that they share in one order, so none waits for another
// that waits for it.
TEST(Tokens, OrderIsTheSameForEveryBatch) {
  std::mt19937 random(15);
  for (int round = 0; round < 200; ++round) {
    Ids ids;
    Attempts attempts;
    for (int i = 0; i < 50; ++i) {
      ids.push_back(std::uniform_int_distribution<std::int64_t>(1, 20)(random));
      attempts.push_back(std::uniform_int_distribution<std::int32_t>(1, 4)(random));
    }
    std::vector<std::pair<std::int32_t, std::int64_t>> order;
    std::set<std::pair<std::int32_t, std::int64_t>> expected;
    for (const TokenGroup& group : group_tokens(ids, attempts))
      for (std::size_t i = 0; i < group.job_ids.size(); ++i) {
        order.emplace_back(group.attempt, group.job_ids[i]);
        EXPECT_EQ(ids[group.positions[i]], group.job_ids[i]);
        EXPECT_EQ(attempts[group.positions[i]], group.attempt);
      }
    for (std::size_t i = 0; i < ids.size(); ++i) expected.emplace(attempts[i], ids[i]);
    EXPECT_EQ(order, (std::vector(expected.begin(), expected.end())));
  }
}

} // namespace
} // namespace jobq::core
