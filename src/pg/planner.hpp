// jobq's statements are written for one plan: a walk along an index in its order. The planner's
// switches are set so around each execution, since a plan is made again after every invalidation
// with the settings of that moment, and put back on every way out.
#pragma once

#include "pg/postgres.hpp"

namespace jobq::pg {

class IndexWalksOnly {
 public:
  IndexWalksOnly();
  ~IndexWalksOnly();
  IndexWalksOnly(const IndexWalksOnly&) = delete;
  IndexWalksOnly& operator=(const IndexWalksOnly&) = delete;

 private:
  struct Switches {
    bool seqscan, bitmapscan, sort, incremental_sort, hashagg, hashjoin, mergejoin, material,
        memoize, jit, indexscan, indexonlyscan, tidscan, nestloop;
    int plan_cache_mode, collapse_from, collapse_join;
    double random_page_cost, seq_page_cost;
  };
  static Switches current();
  static void set(const Switches& switches);

  Switches callers_;
};

} // namespace jobq::pg
