// jobq's statements are written for one plan: a walk along an index in its order, and from there
// into other tables by their keys. Whatever the statistics say and whatever the caller has set, the
// planner is told so around each execution, since a plan is made again after every invalidation:
// its switches are set, and every table counts as large (by the statistics of an empty one, reading
// all of it costs nothing). All is put back on every way out.
#pragma once

#include <array>
#include <cstddef>

#include "pg/postgres.hpp"

namespace jobq::pg {

// To be called once, by _PG_init.
void watch_planner();

class IndexWalksOnly {
 public:
  IndexWalksOnly();
  ~IndexWalksOnly();
  IndexWalksOnly(const IndexWalksOnly&) = delete;
  IndexWalksOnly& operator=(const IndexWalksOnly&) = delete;

 private:
  std::array<bool, 14> callers_switches_;
  std::array<int, 3> callers_numbers_;
  std::array<double, 6> callers_costs_;
};

} // namespace jobq::pg
