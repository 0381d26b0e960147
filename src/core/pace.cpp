#include "core/pace.hpp"

#include <algorithm>

#include "core/pure.hpp"

namespace jobq::core {

Microseconds Pace::wait_at(Microseconds now) const {
  return std::max<Microseconds>(next_ - slack_ - now, 0);
}

void Pace::note(Microseconds now) { next_ = std::max(next_, now) + interval_; }

} // namespace jobq::core
