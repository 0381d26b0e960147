#include "core/groups.hpp"

#include "core/pure.hpp"

namespace jobq::core {

std::size_t hashed(std::uint64_t bits, std::size_t size) {
  // The finalizer of splitmix64.
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return static_cast<std::size_t>((bits ^ (bits >> 31)) % size);
}

} // namespace jobq::core
