// How often something may be done: at once after a silence, `burst` times in a row, and then once
// in `interval`.
#pragma once

#include "core/duration.hpp"

namespace jobq::core {

class Pace {
 public:
  Pace(Microseconds interval, int burst) : interval_(interval), slack_(interval * (burst - 1)) {}

  // 0: now; else how long to wait until then.
  Microseconds wait_at(Microseconds now) const;
  void note(Microseconds now);

 private:
  Microseconds interval_;
  Microseconds slack_;
  Microseconds next_ = 0; // when the next would be due if all were done evenly
};

} // namespace jobq::core
