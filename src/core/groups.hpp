// The last tags of the groups that have a backlog: one table of fixed size for all lanes. A group
// is known by a hash of its key; two with one hash share a turn, nothing else. An entry at or below
// its lane's vtime says nothing any more and gives its place away. A group that finds no place
// among the few that its hash allows goes without: first in, first out with all the others that do.
#pragma once

#include <algorithm>
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

inline constexpr std::size_t kPlacesOfGroup = 8;

// Keys of two numbers are one as a + b * kSpread.
inline constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;

// Where a key's places begin, in a table of that size.
std::size_t hashed(std::uint64_t bits, std::size_t size);

inline std::size_t first_place(const Group& group, std::size_t size) {
  return hashed(group.hash + group.generation * kSpread, size);
}

// The group's entry; null if it has none.
inline Group* find_group(std::span<Group> groups, const Group& wanted) {
  if (groups.empty()) return nullptr;
  std::size_t first = first_place(wanted, groups.size());
  for (std::size_t i = 0; i < std::min(kPlacesOfGroup, groups.size()); ++i) {
    Group& group = groups[(first + i) % groups.size()];
    if (group.generation == wanted.generation && group.hash == wanted.hash) return &group;
  }
  return nullptr;
}

// The group's entry, made if there is a place for it; null if there is none. is_idle(entry):
// whether it may go.
template <typename IsIdle>
Group* place(std::span<Group> groups, const Group& wanted, IsIdle is_idle) {
  if (groups.empty()) return nullptr;
  std::size_t first = first_place(wanted, groups.size());
  Group* vacant = nullptr;
  for (std::size_t i = 0; i < std::min(kPlacesOfGroup, groups.size()); ++i) {
    Group& group = groups[(first + i) % groups.size()];
    if (group.generation == wanted.generation && group.hash == wanted.hash) return &group;
    if (vacant == nullptr && (group.generation == 0 || is_idle(group))) vacant = &group;
  }
  if (vacant != nullptr) *vacant = wanted;
  return vacant;
}

} // namespace jobq::core
