// The last tags of the groups that have a backlog: one table of fixed size for all lanes. A group
// is known by a hash of its key; two with one hash share a turn, nothing else. An entry at or below
// its lane's vtime says nothing any more and gives its place away. A group that finds no place goes
// without: first in, first out with all the others that do.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/lane.hpp"

namespace jobq::core {

struct Group {
  std::uint64_t hash = 0;
  std::uint64_t generation = 0; // of its lane; 0: a free place
  std::uint32_t lane = 0;       // where that lane is
  Tag last = kBeforeAll;
};

// A group may stand in two buckets, and is put into the emptier one: with twice as many places as
// groups every one finds a place, where one bucket each would refuse some in a table half full.
inline constexpr std::size_t kPlacesOfBucket = 8;

// So many places does that number of groups need.
constexpr std::size_t places_for(std::size_t groups) {
  if (groups <= kPlacesOfBucket) return groups;
  return (2 * groups + kPlacesOfBucket - 1) / kPlacesOfBucket * kPlacesOfBucket;
}

// Keys of two numbers are one as a + b * kSpread.
inline constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;

// Which of so many is a key's.
std::size_t hashed(std::uint64_t bits, std::size_t size);

using Buckets = std::array<std::span<Group>, 2>;
Buckets buckets_of(std::span<Group> groups, const Group& key);

// The group's entry; null if it has none.
Group* find_group(std::span<Group> groups, const Group& wanted);

// The group's entry, made if there is a place for it; null if there is none. is_idle(entry):
// whether it may go.
template <typename IsIdle>
Group* place(std::span<Group> groups, const Group& wanted, IsIdle is_idle) {
  if (Group* entry = find_group(groups, wanted)) return entry;
  auto is_vacant = [&](const Group& group) { return group.generation == 0 || is_idle(group); };
  Buckets buckets = buckets_of(groups, wanted);
  auto emptier = std::ranges::max(buckets, {}, [&](std::span<Group> bucket) {
    return std::ranges::count_if(bucket, is_vacant);
  });
  auto vacant = std::ranges::find_if(emptier, is_vacant);
  if (vacant == emptier.end()) return nullptr;
  *vacant = wanted;
  return &*vacant;
}

} // namespace jobq::core
