// How soon after one another something may be done. What comes alone is done at once; what comes
// again and again is done in intervals that double from `least` to `most`.
#pragma once

#include "core/duration.hpp"

namespace jobq::core {

class Pace {
 public:
  Pace(Microseconds least, Microseconds most) : least_(least), most_(most), interval_(least) {}

  // 0: now; else how long to wait until then.
  Microseconds wait_at(Microseconds now) const;

  // It is done. If that was due as soon as the interval was over, or nearly so, it came in a row.
  void note(Microseconds now);

 private:
  Microseconds least_;
  Microseconds most_;
  Microseconds interval_;
  Microseconds next_ = 0;
};

} // namespace jobq::core
