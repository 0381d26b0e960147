#include "core/lane_table.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr QueueName kMail = {.database = 5, .queue_id = 1};
constexpr LaneKey kHigh = {.queue = kMail, .priority = 1};
constexpr LaneKey kLow = {.queue = kMail, .priority = 2};

class Table : public testing::Test {
 protected:
  Tag put(Touch& touch, std::uint64_t group = 1) {
    return table_.put(touch, {.group = group, .stride = 10, .clock = 50});
  }
  void build(const LaneKey& key, const Backlog& backlog = {}, Tag clock = 50) {
    Touch touch = {.key = key};
    std::optional<std::uint32_t> at = table_.reserve(touch);
    ASSERT_TRUE(at);
    table_.install(*at, backlog, clock);
  }
  void claim(Touch& touch, Scan scan) {
    std::optional<ClaimStart> start = table_.begin_claim(touch);
    ASSERT_TRUE(start);
    table_.end_claim(touch, *start, scan);
  }
  bool is_complete() {
    return table_.visit(kMail, [](std::int32_t) {});
  }
  const Lane& lane(const LaneKey& key) { return *table_.find(key); }

  LaneCommon common_;
  std::vector<LaneSlot> slots_ = std::vector<LaneSlot>(1);
  std::vector<KnownQueue> queues_ = std::vector<KnownQueue>(1);
  std::vector<Group> groups_ = std::vector<Group>(8);
  LaneTable table_{common_, slots_, queues_, groups_};
};

TEST_F(Table, GivesTheClocksTagsWithoutALane) {
  Touch touch = {.key = kHigh};
  EXPECT_EQ(put(touch), 50);
  EXPECT_EQ(table_.put(touch, {.group = 1, .stride = 10, .clock = 30}), 50);
  EXPECT_EQ(touch.put, 50);
  table_.commit(touch);
  EXPECT_FALSE(touch.is_used());
  EXPECT_EQ(common_.laneless_open, 0);
}

TEST_F(Table, StartsAnEmptyLaneAtTheClock) {
  build(kHigh);
  EXPECT_EQ(lane(kHigh).vtime, 50);
  Touch touch = {.key = kHigh};
  EXPECT_EQ(put(touch), 60);
}

TEST_F(Table, StartsALaneWithABacklogBelowIt) {
  Touch touch = {.key = kHigh};
  std::optional<std::uint32_t> at = table_.reserve(touch);
  table_.remember(*at, 1, 90);
  table_.install(*at, {.lowest = 70, .highest = 90}, 200);
  EXPECT_EQ(lane(kHigh).vtime, 69);
  EXPECT_EQ(put(touch, 1), 100);
  EXPECT_EQ(put(touch, 2), 79);
}

TEST_F(Table, GoesOnBehindTagsGivenWithoutTheLane) {
  Touch touch = {.key = kHigh};
  put(touch);
  build(kHigh, {.lowest = 20, .highest = 20});
  EXPECT_EQ(lane(kHigh).highest, 50);
  EXPECT_EQ(put(touch), 60);
}

TEST_F(Table, HasOneBuilderForALane) {
  Touch touch = {.key = kHigh};
  std::optional<std::uint32_t> at = table_.reserve(touch);
  EXPECT_FALSE(table_.reserve(touch));
  EXPECT_EQ(table_.find(kHigh), nullptr);
  table_.give_back(*at);
  EXPECT_TRUE(table_.reserve(touch));
}

TEST_F(Table, LetsNobodyBuildALaneWhoseRowsHeHasTaken) {
  Touch touch = {.key = kHigh};
  table_.take(touch, 7);
  EXPECT_FALSE(table_.reserve(touch));
}

TEST_F(Table, ReusesALaneThatNobodyUses) {
  build(kHigh);
  Touch touch = {.key = kHigh};
  Tag last = put(touch);
  EXPECT_FALSE(table_.reserve({.key = kLow}));
  table_.commit(touch);
  build(kLow);
  EXPECT_EQ(table_.find(kHigh), nullptr);
  EXPECT_EQ(put(touch), last);
}

TEST_F(Table, ACallbackFindsTheLaneThatCameAfterIt) {
  Touch producer = {.key = kHigh};
  Tag tag = put(producer);
  build(kHigh);
  Touch claimer = {.key = kHigh};
  claim(claimer, {.is_to_end = true});
  EXPECT_GT(lane(kHigh).cursor, tag);
  table_.commit(producer);
  EXPECT_EQ(lane(kHigh).cursor, tag);
}

TEST_F(Table, AnAbortSurfacesWhatItTook) {
  build(kHigh, {.lowest = 20, .highest = 40});
  Touch first = {.key = kHigh};
  claim(first, {.lowest = 20, .highest = 30});
  EXPECT_EQ(first.take, 20);
  Touch second = {.key = kHigh};
  claim(second, {.lowest = 40, .highest = 40, .is_to_end = true});
  EXPECT_EQ(lane(kHigh).cursor, 31);
  table_.abort_subtransaction(first);
  EXPECT_EQ(lane(kHigh).cursor, 20);
  table_.abort(first);
  EXPECT_EQ(lane(kHigh).lowerings, 2U);
  EXPECT_EQ(lane(kHigh).open, 1);
}

TEST_F(Table, AClaimThatFailsSurfacesAllFromWhereItBegan) {
  build(kHigh, {.lowest = 20, .highest = 40});
  Touch touch = {.key = kHigh};
  claim(touch, {.lowest = 20, .highest = 40, .is_to_end = true});
  Tag cursor = lane(kHigh).cursor;
  Touch failing = {.key = kHigh};
  table_.begin_claim(failing);
  EXPECT_EQ(failing.take, cursor);
}

TEST_F(Table, LeavesOutALaneWithoutRows) {
  build(kHigh);
  Touch touch = {.key = kHigh};
  claim(touch, {.is_to_end = true});
  EXPECT_FALSE(table_.begin_claim(touch));
}

TEST_F(Table, KnowsThatItsLanesAreCompleteUntilARowComesWithoutOne) {
  build(kHigh);
  EXPECT_FALSE(is_complete());
  table_.end_survey(kMail, table_.begin_survey(kMail));
  EXPECT_TRUE(is_complete());
  Touch touch = {.key = kLow};
  put(touch);
  std::uint64_t doubted = table_.begin_survey(kMail);
  table_.commit(touch);
  EXPECT_FALSE(is_complete());
  table_.end_survey(kMail, doubted);
  EXPECT_FALSE(is_complete());
}

TEST_F(Table, CountsACursorThatIsTooHigh) {
  build(kHigh, {.lowest = 20, .highest = 40});
  slots_[0].lane.cursor = 30;
  EXPECT_FALSE(table_.end_check(kHigh, table_.begin_check(kHigh), 30));
  EXPECT_TRUE(table_.end_check(kHigh, table_.begin_check(kHigh), 20));
  EXPECT_EQ(lane(kHigh).cursor, 20);
}

TEST_F(Table, CountsNoCursorThatACallbackIsAboutToLower) {
  build(kHigh, {.lowest = 20, .highest = 40});
  Touch touch = {.key = kHigh};
  claim(touch, {.lowest = 20, .highest = 40, .is_to_end = true});
  EXPECT_FALSE(table_.end_check(kHigh, table_.begin_check(kHigh), 20));
  slots_[0].lane.cursor = 30;
  Reading reading = table_.begin_check(kHigh);
  table_.abort(touch);
  EXPECT_FALSE(table_.end_check(kHigh, reading, 20));
}

TEST_F(Table, CountsNoCursorThatOneWithoutALaneIsAboutToLower) {
  Touch producer = {.key = kHigh};
  Tag tag = put(producer);
  build(kHigh);
  Touch claimer = {.key = kHigh};
  claim(claimer, {.is_to_end = true});
  table_.commit(claimer);
  EXPECT_FALSE(table_.end_check(kHigh, table_.begin_check(kHigh), tag));
}

// The lane that the check read is gone; a row came without one, and has a lane since.
TEST_F(Table, CountsNoCursorOfAnotherGeneration) {
  build(kHigh);
  Touch touch = {.key = kHigh};
  Tag tag = put(touch);
  table_.commit(touch);
  claim(touch, {.lowest = tag, .highest = tag, .is_to_end = true});
  claim(touch, {.is_to_end = true});
  table_.commit(touch);
  Reading reading = table_.begin_check(kHigh);
  build(kLow);
  tag = put(touch);
  table_.commit(touch);
  build(kHigh, {.lowest = tag, .highest = tag});
  ASSERT_LT(tag, reading.cursor);
  ASSERT_EQ(lane(kHigh).lowerings, reading.lowerings);
  EXPECT_FALSE(table_.end_check(kHigh, reading, tag));
}

TEST_F(Table, PurgingRaisesTheVtime) {
  build(kHigh, {.lowest = 20, .highest = 40});
  Touch touch = {.key = kHigh};
  Taking taking = table_.take(touch, kBeforeAll);
  taking.end(20);
  touch.purged = 40;
  table_.commit(touch);
  EXPECT_EQ(lane(kHigh).vtime, 40);
  EXPECT_EQ(lane(kHigh).lowerings, 0U);
}

TEST(Touches, AreOneForALaneAndStayWhereTheyAre) {
  Touches touches;
  Touch& first = touches.of(kHigh);
  for (std::int32_t priority = 2; priority < 100; ++priority)
    touches.of({.queue = kMail, .priority = priority});
  EXPECT_EQ(&touches.of(kHigh), &first);
  EXPECT_FALSE(touches.is_any_used());
  first.is_laneless = true;
  EXPECT_TRUE(touches.is_any_used());
}

} // namespace
} // namespace jobq::core
