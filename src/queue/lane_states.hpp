// The lanes as they are, for people.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jobq::queue {

struct LaneReport {
  std::size_t places = 0;           // jobq.max_lanes
  std::size_t busy = 0;             // of all databases: that may have jobs, or are touched
  std::size_t group_places = 0;     // jobq.max_groups
  std::size_t groups = 0;           // of all databases: that have ready jobs and a place
  std::size_t crowded = 0;          // lanes in which groups without a place have ready jobs
  std::uint64_t found_too_high = 0; // of all databases, since the server's start
};
LaneReport report_on_lanes();

} // namespace jobq::queue
