#include "core/lane.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

constexpr Tag kStride = 1000;

Scan took(Tag lowest, Tag highest) { return {.lowest = lowest, .highest = highest}; }
Scan found_nothing() { return {.is_to_end = true}; }

class ALane : public testing::Test {
 protected:
  Lane lane_ = {.generation = 1, .vtime = 100, .highest = 200};
};

TEST(Stride, IsTheInverseOfTheWeight) {
  EXPECT_EQ(stride_of(1), 1000);
  EXPECT_EQ(stride_of(3), 333);
  EXPECT_EQ(stride_of(1000), 1);
}

TEST_F(ALane, GivesAGroupItsNextTagBehindItsLast) {
  Tag last = 500;
  EXPECT_EQ(give_tag(lane_, &last, kStride), 1500);
  EXPECT_EQ(last, 1500);
  EXPECT_EQ(lane_.highest, 1500);
}

TEST_F(ALane, GivesAGroupWithoutABacklogTheNextTurn) {
  Tag last = 50;
  EXPECT_EQ(give_tag(lane_, &last, kStride), 1100);
}

TEST_F(ALane, GivesNoTagBelowThoseThatWereGivenWithoutIt) {
  lane_.start = 700;
  Tag last = 500;
  EXPECT_EQ(give_tag(lane_, &last, kStride), 1700);
}

TEST_F(ALane, GivesAGroupWithoutAnEntryTheLastPlace) {
  EXPECT_EQ(give_tag(lane_, nullptr, kStride), 1200);
  EXPECT_EQ(lane_.overflow, 1200);
}

TEST_F(ALane, GivesTheLastTagAgainWhenThereIsNoneBehindIt) {
  lane_.vtime = lane_.highest = kLastTag - 1;
  Tag last = 50;
  EXPECT_EQ(give_tag(lane_, &last, kStride), kLastTag);
  EXPECT_EQ(give_tag(lane_, &last, kStride), kLastTag);
  EXPECT_EQ(give_tag(lane_, nullptr, kStride), kLastTag);
}

TEST_F(ALane, RisesToTheHighestRowTakenAndNotFurther) {
  raise(lane_, read(lane_), took(40, 60));
  EXPECT_EQ(lane_.cursor, 60);
}

TEST_F(ALane, RisesPastTheVtimeByOneIfAllWasRead) {
  raise(lane_, read(lane_), found_nothing());
  EXPECT_EQ(lane_.cursor, 101);
}

TEST_F(ALane, RisesByTheVtimeThatWasRead) {
  Reading reading = read(lane_);
  raise(lane_, read(lane_), took(150, 150));
  EXPECT_EQ(lane_.vtime, 150);
  EXPECT_EQ(lane_.cursor, 101);
  raise(lane_, reading, found_nothing());
  EXPECT_EQ(lane_.cursor, 101);
}

TEST_F(ALane, DoesNotRiseAboveARowThatWasLeft) {
  raise(lane_, read(lane_), {.left = 30, .is_to_end = true});
  EXPECT_EQ(lane_.cursor, 30);
}

TEST_F(ALane, DoesNotRiseAboveARowThatAppeared) {
  Reading reading = read(lane_);
  lower(lane_, 70);
  lower(lane_, 20);
  lower(lane_, 90);
  raise(lane_, reading, found_nothing());
  EXPECT_EQ(lane_.cursor, 20);
}

TEST_F(ALane, DoesNotRiseIfMoreAppearedThanItRemembers) {
  Reading reading = read(lane_);
  for (std::size_t i = 0; i < Lane::kRing; ++i) lower(lane_, 50);
  raise(lane_, reading, found_nothing());
  EXPECT_EQ(lane_.cursor, 50);
  lower(lane_, 50);
  raise(lane_, reading, found_nothing());
  EXPECT_EQ(lane_.cursor, 50);
  raise(lane_, read(lane_), found_nothing());
  EXPECT_EQ(lane_.cursor, 101);
}

TEST_F(ALane, DoesNotRiseForAnOlderSnapshotOrAnotherGeneration) {
  Reading reading = read(lane_);
  raise(lane_, reading, {.highest = 150, .is_to_end = true, .is_current = false});
  EXPECT_EQ(lane_.cursor, 0);
  EXPECT_EQ(lane_.vtime, 150);
  ++lane_.generation;
  raise(lane_, reading, found_nothing());
  EXPECT_EQ(lane_.cursor, 0);
}

TEST_F(ALane, IsReadUpOnceItsCursorIsAboveAllTags) {
  EXPECT_FALSE(lane_.is_read_up());
  raise(lane_, read(lane_), took(200, 200));
  raise(lane_, read(lane_), found_nothing());
  EXPECT_TRUE(lane_.is_read_up());
  Tag last = 0;
  give_tag(lane_, &last, kStride);
  EXPECT_FALSE(lane_.is_read_up());
}

TEST_F(ALane, FallsForACommittedPutThatClaimsMayHavePassed) {
  lane_.cursor = 101;
  appear(lane_, 101);
  EXPECT_EQ(lane_.lowerings, 0U);
  appear(lane_, 100);
  EXPECT_EQ(lane_.cursor, 100);
  appear(lane_, kNoTag);
  EXPECT_EQ(lane_.lowerings, 1U);
}

std::vector<bool> ends(std::vector<Scan> scans, bool is_full) {
  set_ends(scans, is_full);
  std::vector<bool> ends;
  for (const Scan& scan : scans) ends.push_back(scan.is_to_end);
  return ends;
}

TEST(Scans, OfAShortCallAreAllToTheEnd) {
  EXPECT_EQ(ends({Scan{}, took(1, 2), Scan{}}, false), (std::vector{true, true, true}));
}

TEST(Scans, OfAFullCallAreToTheEndBeforeTheLastLaneThatGaveARow) {
  EXPECT_EQ(ends({Scan{}, took(1, 2), Scan{}, took(3, 3), Scan{}}, true),
            (std::vector{true, true, true, false, false}));
}

} // namespace
} // namespace jobq::core
