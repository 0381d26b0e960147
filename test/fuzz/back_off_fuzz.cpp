#include "core/back_off.hpp"

#include "fuzz/fuzz.hpp"

#include <algorithm>

namespace jobq::core {

// The wait without jitter is exact. The jitter is a double's: it may err by the double's last
// place.
void hold(Bytes& bytes) {
  const BackOff back_off = {.base = any_count<Microseconds>(bytes),
                            .cap = any_count<Microseconds>(bytes)};
  const auto tries = any<std::int32_t>(bytes);
  const double chance = std::min(bytes.ConsumeProbability<double>(), 0x1.fffffffffffffp-1);

  const int doublings = std::clamp(tries - (tries > 0 ? 1 : 0), 0, 63);
  const Wide exact = std::min(Wide{back_off.base} << doublings, Wide{back_off.cap});
  EXPECT_TRUE(back_off_after(back_off, tries, 0) == exact);

  const Microseconds wait = back_off_after(back_off, tries, chance);
  EXPECT_TRUE(wait >= exact);
  EXPECT_TRUE(wait <= exact + exact / 10 + (exact >> 50) + 1);
  EXPECT_GE(wait, back_off_after(back_off, tries, chance / 2));
}

} // namespace jobq::core
