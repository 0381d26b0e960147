#include "core/pace.hpp"

#include <algorithm>

#include "core/pure.hpp"

namespace jobq::core {

Microseconds Pace::wait_at(Microseconds now) const {
  return std::max<Microseconds>(next_ - now, 0);
}

void Pace::note(Microseconds now) {
  bool is_in_a_row = now - next_ < least_;
  interval_ = is_in_a_row ? std::min(2 * interval_, most_) : least_;
  next_ = now + interval_;
}

} // namespace jobq::core
