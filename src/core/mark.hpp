// The earliest instant at which a line has something to do, as far as is known: at most too early,
// never too late. Whoever puts a row into the line lowers the mark when the row can be seen. The
// one who reads the line begins before its snapshot and ends with the earliest row that it left
// there; what is lowered in between stays lowered.
//
// Why it is never too late: a row that the reader's snapshot did not show was lowered to after the
// reader had begun.
#pragma once

#include <algorithm>

#include "core/duration.hpp"

namespace jobq::core {

struct Mark {
  Microseconds instant = 0; // 0: not read yet

  void begin_reading() { instant = kForever; }
  void end_reading(Microseconds left) { lower(left); }
  void lower(Microseconds row) { instant = std::min(instant, row); }
};

} // namespace jobq::core
