// What is known of a line without looking at it: the earliest instant at which it has something to
// do, and the place in its index below which a look is in vain. Whoever puts a row into the line
// lowers both when the row can be seen. The one who reads the line begins before its snapshot and
// ends with what it saw; what is lowered in between stays lowered.
//
// Why they are never too late: a row that the reader's snapshot did not show was lowered to after
// the reader had begun. A row that somebody was deleting was shown, so it need not be told of when
// that is taken back.
#pragma once

#include <algorithm>
#include <compare>
#include <limits>

#include "core/duration.hpp"

namespace jobq::core {

// Where a row stands in the order of its line. Many may have one instant.
struct Place {
  Microseconds instant = std::numeric_limits<Microseconds>::min();
  std::int64_t job_id = std::numeric_limits<std::int64_t>::min();

  auto operator<=>(const Place&) const = default;
};

inline constexpr Place kBeginning = {};
inline constexpr Place kEnd = {.instant = kForever};

struct Mark {
  Microseconds instant = 0; // 0: not read yet
  Place low = kBeginning;   // never past the instant, so who finds that early enough need not look

  void begin_reading() { instant = kForever; }

  // `left`: when the rows that the reader left there have something to do. `lowest`: the first row
  // that its snapshot showed, whatever is wrong with that one; not past `left`.
  void end_reading(Microseconds left, Place lowest) {
    low = std::min(lowest, Place{.instant = instant});
    instant = std::min(instant, left);
  }

  void lower(Microseconds row) {
    instant = std::min(instant, row);
    low = std::min(low, Place{.instant = row});
  }
};

} // namespace jobq::core
