// Time zones made for a test: a list of changes.
#pragma once

#include "core/zone.hpp"

#include <utility>
#include <vector>

namespace jobq::core {

struct Change {
  Seconds at = 0;     // the instant
  Seconds offset = 0; // from then on
};

// The first offset holds before all changes, which are in order.
inline Zone made_zone(Seconds first_offset, std::vector<Change> changes = {}) {
  return [first_offset, changes = std::move(changes)](Seconds instant) {
    Stretch stretch = {.offset = first_offset, .until = kNever};
    for (const Change& change : changes) {
      stretch.until = change.at;
      if (instant < change.at) return stretch;
      stretch = {.offset = change.offset, .until = kNever};
    }
    return stretch;
  };
}

} // namespace jobq::core
