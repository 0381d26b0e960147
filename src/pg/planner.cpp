#include "pg/planner.hpp"

extern "C" {
#include "jit/jit.h"
#include "optimizer/optimizer.h"
}

namespace jobq::pg {

IndexWalksOnly::IndexWalksOnly() : callers_(current()) {
  set({.seqscan = false,
       .bitmapscan = false,
       .sort = false,
       .incremental_sort = false,
       .hashagg = true,
       .hashjoin = false,
       .mergejoin = false,
       .material = false,
       .memoize = false,
       .jit = false,
       .indexscan = true,
       .indexonlyscan = true,
       .tidscan = true,
       .nestloop = true,
       .plan_cache_mode = PLAN_CACHE_MODE_AUTO,
       .collapse_from = 8,
       .collapse_join = 8,
       .random_page_cost = DEFAULT_RANDOM_PAGE_COST,
       .seq_page_cost = DEFAULT_SEQ_PAGE_COST});
}

IndexWalksOnly::~IndexWalksOnly() { set(callers_); }

IndexWalksOnly::Switches IndexWalksOnly::current() {
  return {.seqscan = enable_seqscan,
          .bitmapscan = enable_bitmapscan,
          .sort = enable_sort,
          .incremental_sort = enable_incremental_sort,
          .hashagg = enable_hashagg,
          .hashjoin = enable_hashjoin,
          .mergejoin = enable_mergejoin,
          .material = enable_material,
          .memoize = enable_memoize,
          .jit = jit_enabled,
          .indexscan = enable_indexscan,
          .indexonlyscan = enable_indexonlyscan,
          .tidscan = enable_tidscan,
          .nestloop = enable_nestloop,
          .plan_cache_mode = plan_cache_mode,
          .collapse_from = from_collapse_limit,
          .collapse_join = join_collapse_limit,
          .random_page_cost = random_page_cost,
          .seq_page_cost = seq_page_cost};
}

void IndexWalksOnly::set(const Switches& switches) {
  enable_seqscan = switches.seqscan;
  enable_bitmapscan = switches.bitmapscan;
  enable_sort = switches.sort;
  enable_incremental_sort = switches.incremental_sort;
  enable_hashagg = switches.hashagg;
  enable_hashjoin = switches.hashjoin;
  enable_mergejoin = switches.mergejoin;
  enable_material = switches.material;
  enable_memoize = switches.memoize;
  jit_enabled = switches.jit;
  enable_indexscan = switches.indexscan;
  enable_indexonlyscan = switches.indexonlyscan;
  enable_tidscan = switches.tidscan;
  enable_nestloop = switches.nestloop;
  plan_cache_mode = switches.plan_cache_mode;
  from_collapse_limit = switches.collapse_from;
  join_collapse_limit = switches.collapse_join;
  random_page_cost = switches.random_page_cost;
  seq_page_cost = switches.seq_page_cost;
}

} // namespace jobq::pg
