#include "core/groups.hpp"

#include "core/pure.hpp"

namespace jobq::core {

std::size_t first_place(const Group& group, std::size_t size) {
  // The finalizer of splitmix64.
  std::uint64_t bits = group.hash + group.generation * 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return static_cast<std::size_t>((bits ^ (bits >> 31)) % size);
}

} // namespace jobq::core
