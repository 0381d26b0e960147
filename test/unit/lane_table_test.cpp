#include "core/lane_table.hpp"

#include <algorithm>
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
  // One with a backlog of group 1, whose last tag was not read.
  void build_partly(Tag lowest, Tag highest) {
    build(kHigh, {.lowest = lowest, .highest = highest, .is_partly = true});
  }
  std::uint64_t generation() { return lane(kHigh).generation; }
  void claim(Touch& touch, Scan scan) {
    std::optional<ClaimStart> start = table_.begin_claim(touch);
    ASSERT_TRUE(start);
    table_.end_claim(touch, *start, scan);
  }
  bool is_complete() {
    return table_.visit(kMail, [](std::int32_t, const Lane&) {});
  }
  const Lane& lane(const LaneKey& key) { return *table_.find(key); }

  void use_slots(std::size_t count) {
    slots_.assign(count, {});
    table_ = LaneTable(common_, slots_, buckets_, queues_, groups_);
  }

  LaneCommon common_;
  std::vector<LaneSlot> slots_ = std::vector<LaneSlot>(1);
  std::vector<std::uint32_t> buckets_ = std::vector<std::uint32_t>(2);
  std::vector<KnownQueue> queues_ = std::vector<KnownQueue>(1);
  std::vector<Group> groups_ = std::vector<Group>(8);
  LaneTable table_{common_, slots_, buckets_, queues_, groups_};
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

TEST_F(Table, KnowsAllTagsGivenWithoutTheLaneThatTheBacklogShows) {
  Touch touch = {.key = kHigh};
  put(touch);
  table_.commit(touch);
  build(kHigh, {.lowest = 20, .highest = 20});
  EXPECT_EQ(lane(kHigh).highest, 20);
  EXPECT_EQ(put(touch), 29);
}

TEST_F(Table, DoesNotKnowATagGivenWhileTheLaneIsBuilt) {
  std::optional<std::uint32_t> at = table_.reserve({.key = kHigh});
  Touch touch = {.key = kHigh};
  Tag last = put(touch);
  table_.commit(touch);
  table_.install(*at, {.lowest = 20, .highest = 20}, 50);
  EXPECT_EQ(lane(kHigh).highest, last);
  EXPECT_EQ(put(touch), last + 10);
}

TEST_F(Table, DoesNotMindATagGivenInAnotherLaneMeanwhile) {
  std::optional<std::uint32_t> at = table_.reserve({.key = kHigh});
  Touch touch = {.key = kLow};
  put(touch);
  table_.install(*at, {.lowest = 20, .highest = 20}, 50);
  EXPECT_EQ(lane(kHigh).highest, 20);
}

TEST_F(Table, TriesToPutOnlyIfTheLaneIsThere) {
  Touch touch = {.key = kHigh};
  EXPECT_FALSE(table_.try_put(touch, {.group = 1}));
  EXPECT_FALSE(touch.is_used());
  std::optional<std::uint32_t> at = table_.reserve(touch);
  EXPECT_TRUE(table_.is_being_built(kHigh));
  EXPECT_FALSE(table_.try_put(touch, {.group = 1}));
  table_.install(*at, {}, 50);
  EXPECT_FALSE(table_.is_being_built(kHigh));
  EXPECT_EQ(table_.try_put(touch, {.group = 1, .stride = 10}), 60);
}

TEST_F(Table, PutsAllBehindABacklogThatWasReadPartly) {
  build_partly(20, 200);
  Touch touch = {.key = kHigh};
  EXPECT_EQ(put(touch, 2), 210);
  EXPECT_TRUE(lane(kHigh).is_partly_known());
}

TEST_F(Table, GivesTurnsOnceTheBacklogIsLearnt) {
  build_partly(20, 200);
  EXPECT_TRUE(table_.learn(kHigh, generation(), 1, 200));
  EXPECT_TRUE(table_.learn(kHigh, generation(), 1, 100));
  table_.know_all(kHigh, generation());
  EXPECT_FALSE(lane(kHigh).is_partly_known());
  Touch touch = {.key = kHigh};
  EXPECT_EQ(put(touch, 1), 210);
  EXPECT_EQ(put(touch, 2), 29);
}

TEST_F(Table, LearnsNothingForAnotherGeneration) {
  build_partly(20, 200);
  EXPECT_FALSE(table_.learn(kHigh, generation() + 1, 1, 200));
  EXPECT_FALSE(table_.learn(kLow, generation(), 1, 200));
  table_.know_all(kHigh, generation() + 1);
  EXPECT_TRUE(lane(kHigh).is_partly_known());
}

TEST_F(Table, LearnsNoMoreThanItCanKnow) {
  Touch touch = {.key = kHigh};
  Tag last = put(touch);
  build_partly(20, 200);
  table_.know_all(kHigh, generation());
  EXPECT_EQ(put(touch, 2), last + 10);
}

TEST_F(Table, ABatchThatIsRolledBackHasUsedNoTurns) {
  build(kHigh);
  Touch before = {.key = kHigh};
  Tag last = put(before);
  table_.commit(before);
  Touch batch = {.key = kHigh};
  batch.expect(1);
  for (int i = 0; i < 100; ++i) put(batch);
  table_.abort(batch);
  EXPECT_EQ(put(before), last + 10);
}

TEST_F(Table, ABatchBehindWhichSomebodyHasPutKeepsItsTurns) {
  build(kHigh);
  Touch batch = {.key = kHigh};
  batch.expect(1);
  put(batch);
  Touch other = {.key = kHigh};
  Tag last = put(other);
  table_.abort(batch);
  EXPECT_EQ(put(other), last + 10);
}

TEST_F(Table, ABatchGivesBackWhatItPutSinceSomebodyElse) {
  build(kHigh);
  Touch batch = {.key = kHigh};
  batch.expect(1);
  put(batch);
  Touch other = {.key = kHigh};
  Tag last = put(other);
  put(batch);
  table_.abort(batch);
  EXPECT_EQ(put(other), last + 10);
}

TEST_F(Table, ABatchThatIsCommittedOrWasNotExpectedKeepsItsTurns) {
  build(kHigh);
  Touch batch = {.key = kHigh};
  batch.expect(1);
  Tag last = put(batch);
  table_.commit(batch);
  last = put(batch);
  table_.abort(batch);
  EXPECT_EQ(put(batch), last + 10);
}

TEST_F(Table, WhatWasLearntIsNotGivenBack) {
  build_partly(20, 200);
  Touch batch = {.key = kHigh};
  batch.expect(1);
  put(batch);
  table_.learn(kHigh, generation(), 1, 200);
  table_.know_all(kHigh, generation());
  table_.abort(batch);
  EXPECT_EQ(put(batch), 210);
}

TEST_F(Table, CopyLowersAndLeavesNothingReadUp) {
  build(kHigh);
  Touch touch = {.key = kHigh};
  claim(touch, {.is_to_end = true});
  table_.end_survey(kMail, table_.begin_survey(kMail));
  ASSERT_TRUE(is_complete());
  table_.copied(kMail.database + 1);
  EXPECT_TRUE(is_complete());
  EXPECT_TRUE(lane(kHigh).is_read_up());
  table_.copied(kMail.database);
  EXPECT_FALSE(is_complete());
  EXPECT_FALSE(lane(kHigh).is_read_up());
  EXPECT_EQ(lane(kHigh).cursor, kBeforeAll);
}

TEST_F(Table, RebuildsALaneWithRowsByAnotherHandWhenNobodyUsesIt) {
  build(kHigh);
  Touch touch = {.key = kHigh};
  Tag last = put(touch);
  table_.copied(kMail.database);
  EXPECT_FALSE(table_.reserve({.key = kHigh}));
  EXPECT_EQ(table_.try_put(touch, {.group = 1, .stride = 10}), last + 10);
  table_.commit(touch);
  std::uint64_t before = generation();
  EXPECT_FALSE(table_.try_put(touch, {.group = 1}));
  build(kHigh, {.lowest = 20, .highest = 90});
  EXPECT_GT(generation(), before);
  EXPECT_FALSE(lane(kHigh).is_foreign);
  EXPECT_EQ(lane(kHigh).highest, 90);
}

TEST_F(Table, PutsIntoALaneThatIsToBeRebuiltIfItCannotBe) {
  build(kHigh);
  table_.copied(kMail.database);
  Touch touch = {.key = kHigh};
  EXPECT_EQ(put(touch), 60);
  EXPECT_TRUE(touch.is_attached);
}

TEST_F(Table, CopyReachesALaneThatIsBeingBuilt) {
  std::optional<std::uint32_t> at = table_.reserve({.key = kHigh});
  table_.copied(kMail.database);
  table_.install(*at, {}, 50);
  EXPECT_TRUE(lane(kHigh).is_foreign);
}

TEST_F(Table, KnowsNoQueueCompleteWhileALaneHasRowsByAnotherHand) {
  build(kHigh);
  table_.copied(kMail.database);
  table_.end_survey(kMail, table_.begin_survey(kMail));
  EXPECT_FALSE(is_complete());
  build(kHigh);
  table_.end_survey(kMail, table_.begin_survey(kMail));
  EXPECT_TRUE(is_complete());
}

TEST_F(Table, CountsNoCursorThatACopyIsAboutToLower) {
  build(kHigh, {.lowest = 20, .highest = 40});
  slots_[0].lane.cursor = 30;
  table_.begin_copy();
  EXPECT_FALSE(table_.end_check(kHigh, table_.begin_check(kHigh), 20));
  table_.end_copy();
  slots_[0].lane.cursor = 30;
  EXPECT_TRUE(table_.end_check(kHigh, table_.begin_check(kHigh), 20));
}

TEST_F(Table, ForgetsADatabase) {
  use_slots(2);
  build(kHigh);
  build(kLow);
  table_.end_survey(kMail, table_.begin_survey(kMail));
  Touch touch = {.key = kHigh};
  put(touch);
  table_.forget(kMail.database + 1);
  EXPECT_TRUE(is_complete());
  table_.forget(kMail.database);
  EXPECT_FALSE(is_complete());
  EXPECT_TRUE(lane(kHigh).is_foreign);
  EXPECT_EQ(table_.find(kLow), nullptr);
  EXPECT_EQ(queues_[0].doubted, 0U);
  build(kLow);
  EXPECT_FALSE(lane(kLow).is_foreign);
}

TEST_F(Table, GivesFreePlacesBeforeAnybodyGoes) {
  use_slots(3);
  for (std::int32_t priority = 1; priority <= 3; ++priority)
    build({.queue = kMail, .priority = priority});
  table_.forget(kMail.database);
  for (std::int32_t priority = 1; priority <= 3; ++priority)
    build({.queue = {.database = 6, .queue_id = priority}});
  for (std::int32_t priority = 1; priority <= 3; ++priority)
    EXPECT_NE(table_.find({.queue = {.database = 6, .queue_id = priority}}), nullptr);
}

TEST_F(Table, LetsALaneRestThatWasJustBuilt) {
  use_slots(4);
  for (std::int32_t priority = 1; priority <= 4; ++priority)
    build({.queue = kMail, .priority = priority}, {.lowest = 20, .highest = 40});
  slots_[3].lane.cursor = 41;
  build({.queue = kMail, .priority = 5});
  EXPECT_EQ(table_.find({.queue = kMail, .priority = 1}), nullptr);
  slots_[2].lane.cursor = 41;
  build({.queue = kMail, .priority = 6});
  EXPECT_EQ(table_.find({.queue = kMail, .priority = 3}), nullptr);
}

TEST_F(Table, RatherLetsALaneGoThatIsToBeRebuilt) {
  use_slots(3);
  for (std::int32_t priority = 1; priority <= 3; ++priority)
    build({.queue = {.database = static_cast<std::uint32_t>(priority), .queue_id = 1}});
  table_.copied(3);
  build(kHigh);
  EXPECT_EQ(table_.find({.queue = {.database = 3, .queue_id = 1}}), nullptr);
}

TEST_F(Table, VisitsTheLanesOfAQueueAlone) {
  use_slots(20);
  for (std::int64_t queue = 1; queue <= 5; ++queue)
    for (std::int32_t priority = 0; priority < 4; ++priority)
      build({.queue = {.database = 5, .queue_id = queue}, .priority = priority});
  std::int32_t priorities = 0;
  table_.visit(kMail, [&](std::int32_t priority, const Lane& lane) {
    priorities += 1 << (4 * priority);
    EXPECT_NE(lane.generation, 0U);
  });
  EXPECT_EQ(priorities, 0x1111);
}

TEST_F(Table, KnowsManyQueuesAndGivesThePlaceOfOneOfAFew) {
  queues_.assign(64, {});
  table_ = LaneTable(common_, slots_, buckets_, queues_, groups_);
  for (std::int64_t id = 1; id <= 1000; ++id) {
    QueueName queue = {.database = 5, .queue_id = id};
    table_.end_survey(queue, table_.begin_survey(queue));
    EXPECT_TRUE(table_.visit(queue, [](std::int32_t, const Lane&) {}));
  }
  EXPECT_TRUE(
      std::ranges::all_of(queues_, [](const KnownQueue& queue) { return queue.is_complete; }));
}

TEST_F(Table, TellsItsNumbers) {
  use_slots(2);
  build(kHigh, {.lowest = 20, .highest = 40});
  Touch touch = {.key = kHigh};
  put(touch, 1);
  put(touch, 2);
  put(touch, 3);
  EXPECT_EQ(table_.size(), 2U);
  EXPECT_EQ(table_.at(1), nullptr);
  ASSERT_NE(table_.at(0), nullptr);
  EXPECT_EQ(table_.at(0)->key, kHigh);
  std::vector<std::uint32_t> counts(2);
  table_.count_groups(counts, 0, 4);
  table_.count_groups(counts, 4);
  EXPECT_EQ(counts, (std::vector<std::uint32_t>{3, 0}));
  slots_[0].lane.vtime = 1000;
  counts.assign(2, 0);
  table_.count_groups(counts);
  EXPECT_EQ(counts[0], 0U);
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

TEST_F(Table, SendsALaneWithJobsAwayOnlyIfItIsTold) {
  build(kHigh);
  Touch touch = {.key = kHigh};
  put(touch);
  table_.commit(touch);
  EXPECT_FALSE(table_.reserve({.key = kLow}, LaneTable::Eviction::of_idle));
  EXPECT_TRUE(table_.reserve({.key = kLow}, LaneTable::Eviction::of_any));
}

TEST_F(Table, SendsOneWithJobsAwayOnceInSoLongWhateverTheClockDoes) {
  EXPECT_TRUE(table_.take_eviction(1000, 100));
  EXPECT_FALSE(table_.take_eviction(1099, 100));
  EXPECT_TRUE(table_.take_eviction(1100, 100));
  EXPECT_FALSE(table_.take_eviction(1150, 100));
  EXPECT_TRUE(table_.take_eviction(50, 100));
}

TEST_F(Table, GivesThePlaceOfADroppedQueuesLaneAway) {
  build(kHigh);
  Touch touch = {.key = kHigh};
  table_.take(touch, kBeforeAll);
  touch.is_dropped = true;
  table_.abort(touch);
  EXPECT_NE(table_.find(kHigh), nullptr);
  table_.take(touch, kBeforeAll);
  touch.is_dropped = true;
  table_.commit(touch);
  EXPECT_EQ(table_.find(kHigh), nullptr);
  EXPECT_TRUE(table_.reserve({.key = kLow}, LaneTable::Eviction::of_idle));
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
  EXPECT_EQ(lane(kHigh).found_too_high, 1U);
  EXPECT_EQ(common_.found_too_high, 1U);
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

TEST(ATouch, ExpectsAGroupOnceAndNotTooMany) {
  Touch touch = {.key = kHigh};
  for (std::uint64_t group = 2 * Touch::kMostGroups; group > 0; --group) {
    touch.expect(group);
    touch.expect(group);
  }
  EXPECT_EQ(touch.given.size(), Touch::kMostGroups);
  EXPECT_EQ(touch.given_to(1), nullptr);
  touch.reset();
  touch.expect(1);
  EXPECT_EQ(touch.given_to(1)->after, kNoTag);
}

} // namespace
} // namespace jobq::core
