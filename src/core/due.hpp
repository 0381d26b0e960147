// What becomes of the instants that have come since the last one that was handled.
//
// An instant is late if the server was away when it came (down, in recovery, or its clock leapt
// past it), or if nobody came to handle it within ten seconds. For those that are late there is the
// policy; all others fire.
#pragma once

#include <optional>
#include <vector>

#include "core/instants.hpp"

namespace jobq::core {

enum class CatchUp {
  none, // what is late is missed
  once, // the last one that is late fires, the others are missed
  all   // the last 100 that are late fire
};

inline constexpr Microseconds kPunctual = 10 * kSecond;
inline constexpr int kMostCaughtUp = 100;

struct Moment {
  Microseconds now = 0;
  Microseconds undisturbed_since = 0; // what came before is late
};

// Of the instants after `handled_until` and not after now.
struct Due {
  struct Span { // the first and the last of many
    Microseconds first = 0;
    Microseconds last = 0;
  };
  std::optional<Span> long_missed = {};  // before all others; not told one by one
  std::vector<Microseconds> missed = {}; // at most kMostCaughtUp
  std::vector<Microseconds> firing =
      {};                         // at most as many late ones, and those that are not; in order
  Microseconds handled_until = 0; // the last of all these; what it was if there is none
  std::optional<Microseconds> next = {}; // the first one that has not come yet
};

Due due_instants(const Rule& rule, Microseconds handled_until, const Moment& moment,
                 CatchUp catch_up);

} // namespace jobq::core
