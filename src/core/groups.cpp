#include "core/groups.hpp"

#include "core/pure.hpp"

namespace jobq::core {

std::size_t hashed(std::uint64_t bits, std::size_t size) {
  // The finalizer of splitmix64.
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return static_cast<std::size_t>((bits ^ (bits >> 31)) % size);
}

Buckets buckets_of(std::span<Group> groups, const Group& key) {
  std::size_t count = groups.size() / kPlacesOfBucket;
  if (count <= 1) return {groups.first(std::min(groups.size(), kPlacesOfBucket)), {}};
  std::uint64_t bits = key.hash + key.generation * kSpread;
  auto bucket = [&](std::uint64_t salt) {
    return groups.subspan(hashed(bits + salt, count) * kPlacesOfBucket, kPlacesOfBucket);
  };
  return {bucket(0), bucket(~kSpread)};
}

Group* find_group(std::span<Group> groups, const Group& wanted) {
  for (std::span<Group> bucket : buckets_of(groups, wanted))
    for (Group& group : bucket)
      if (group.generation == wanted.generation && group.hash == wanted.hash) return &group;
  return nullptr;
}

} // namespace jobq::core
