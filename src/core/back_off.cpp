#include "core/back_off.hpp"

#include <algorithm>

#include "core/pure.hpp"

namespace jobq::core {

Microseconds back_off_after(const BackOff& back_off, std::int32_t tries, double chance) {
  Microseconds wait = std::min(back_off.base, back_off.cap);
  for (std::int32_t doubled = 1; doubled < tries && wait > 0 && wait < back_off.cap; ++doubled)
    wait = wait > back_off.cap / 2 ? back_off.cap : wait * 2;

  auto jitter = static_cast<Microseconds>(static_cast<double>(wait) * 0.1 * chance);
  return wait > kForever - jitter ? kForever : wait + jitter;
}

} // namespace jobq::core
