#include "core/groups.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

bool none_is_idle(const Group&) { return false; }
bool all_are_idle(const Group&) { return true; }

TEST(Groups, FindAGroupAgainByItsHashAndItsLanesGeneration) {
  std::vector<Group> groups(64);
  Group* entry = place(groups, {.hash = 7, .generation = 1}, none_is_idle);
  ASSERT_NE(entry, nullptr);
  entry->last = 5;
  EXPECT_EQ(place(groups, {.hash = 7, .generation = 1}, all_are_idle)->last, 5);
  EXPECT_EQ(place(groups, {.hash = 7, .generation = 2}, none_is_idle)->last, 0);
  EXPECT_EQ(place(groups, {.hash = 8, .generation = 1}, none_is_idle)->last, 0);
  EXPECT_EQ(place(groups, {.hash = 7, .generation = 1}, none_is_idle)->last, 5);
}

TEST(Groups, GiveThePlaceOfOneThatIsIdleOnlyIfTheyHaveNoEntry) {
  std::vector<Group> groups(1);
  place(groups, {.hash = 7, .generation = 1, .last = 9}, none_is_idle);
  EXPECT_EQ(place(groups, {.hash = 8, .generation = 1}, none_is_idle), nullptr);
  EXPECT_EQ(place(groups, {.hash = 7, .generation = 1}, all_are_idle)->last, 9);
  EXPECT_EQ(place(groups, {.hash = 8, .generation = 1, .last = 3}, all_are_idle)->last, 3);
}

// However many there are room for, and whatever their keys: another generation is another set.
TEST(Groups, FindAPlaceEachIfThereAreNoMoreThanThereIsRoomFor) {
  for (std::size_t most : {1, 4, 8, 9, 100, 1000, 16'384})
    for (std::uint64_t generation = 1; generation <= 20; ++generation) {
      std::vector<Group> groups(places_for(most));
      std::size_t placed = 0;
      for (std::uint64_t hash = 1; hash <= most; ++hash)
        placed += place(groups, {.hash = hash, .generation = generation}, none_is_idle) != nullptr;
      EXPECT_EQ(placed, most);
    }
}

TEST(Groups, AreFoundOnlyIfTheyHaveAnEntry) {
  std::vector<Group> groups(64);
  EXPECT_EQ(find_group(groups, {.hash = 7, .generation = 1}), nullptr);
  Group* entry = place(groups, {.hash = 7, .generation = 1}, none_is_idle);
  EXPECT_EQ(find_group(groups, {.hash = 7, .generation = 1}), entry);
  EXPECT_EQ(find_group(groups, {.hash = 7, .generation = 2}), nullptr);
  EXPECT_EQ(find_group({}, {.hash = 7, .generation = 1}), nullptr);
}

TEST(Groups, GoWithoutIfThereIsNoTable) {
  EXPECT_EQ(place({}, {.hash = 7, .generation = 1}, none_is_idle), nullptr);
}

} // namespace
} // namespace jobq::core
