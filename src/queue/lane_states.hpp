// The lanes as they are, for people.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jobq::queue {

struct LaneReport {
  std::size_t places = 0;           // jobq.max_lanes
  std::size_t busy = 0;             // of all databases: that may have jobs, or are touched
  std::uint64_t found_too_high = 0; // of all databases, since the server's start
};
LaneReport report_on_lanes();

} // namespace jobq::queue
