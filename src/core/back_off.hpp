// How long a job waits before its next try.
#pragma once

#include "core/duration.hpp"

namespace jobq::core {

struct BackOff {
  Microseconds base = 0;
  Microseconds cap = 0;
};

// least(cap, base * 2^(tries - 1)) for the try that just failed (tries >= 1), never past the cap
// by overflow, plus up to a tenth of it: `chance` in [0, 1) spreads jobs that failed together.
Microseconds back_off_after(const BackOff& back_off, std::int32_t tries, double chance);

} // namespace jobq::core
