#include "pg/planner.hpp"

#include <utility>

#include "pg/compat.hpp"

extern "C" {
#include "jit/jit.h"
#include "optimizer/optimizer.h"
#include "nodes/parsenodes.h"
}

namespace jobq::pg {

namespace {

constexpr BlockNumber kManyPages = 1'000'000;
constexpr double kManyRows = 100'000'000;

int walks = 0; // how many are open

void assume_large(RelOptInfo* relation) {
  if (walks == 0) return;
  relation->pages = kManyPages;
  relation->tuples = kManyRows;
  ListCell* cell = nullptr;
  foreach (cell, relation->indexlist) {
    auto* index = static_cast<IndexOptInfo*>(lfirst(cell));
    index->pages = kManyPages;
    index->tuples = kManyRows;
  }
}

} // namespace

void watch_planner() { watch_tables<assume_large>(); }

namespace {

// A variable of the planner, and its value while an index walk is planned and run.
template <typename T>
struct Setting {
  T* variable;
  T ours;
};

constexpr std::array kSwitches = std::to_array<Setting<bool>>({{&enable_seqscan, false},
                                                               {&enable_bitmapscan, false},
                                                               {&enable_sort, false},
                                                               {&enable_incremental_sort, false},
                                                               {&enable_hashjoin, false},
                                                               {&enable_mergejoin, false},
                                                               {&enable_material, false},
                                                               {&enable_memoize, false},
                                                               {&jit_enabled, false},
                                                               {&enable_hashagg, true},
                                                               {&enable_indexscan, true},
                                                               {&enable_indexonlyscan, true},
                                                               {&enable_tidscan, true},
                                                               {&enable_nestloop, true}});

constexpr std::array kNumbers =
    std::to_array<Setting<int>>({{&plan_cache_mode, PLAN_CACHE_MODE_AUTO},
                                 {&from_collapse_limit, 8},
                                 {&join_collapse_limit, 8}});

constexpr std::array kCosts =
    std::to_array<Setting<double>>({{&random_page_cost, DEFAULT_RANDOM_PAGE_COST},
                                    {&seq_page_cost, DEFAULT_SEQ_PAGE_COST},
                                    {&cpu_tuple_cost, DEFAULT_CPU_TUPLE_COST},
                                    {&cpu_index_tuple_cost, DEFAULT_CPU_INDEX_TUPLE_COST},
                                    {&cpu_operator_cost, DEFAULT_CPU_OPERATOR_COST},
                                    {&cursor_tuple_fraction, DEFAULT_CURSOR_TUPLE_FRACTION}});

template <typename T, std::size_t Size>
std::array<T, Size> exchange(const std::array<Setting<T>, Size>& settings) {
  std::array<T, Size> callers;
  for (std::size_t i = 0; i < Size; ++i)
    callers[i] = std::exchange(*settings[i].variable, settings[i].ours);
  return callers;
}

template <typename T, std::size_t Size>
void restore(const std::array<Setting<T>, Size>& settings, const std::array<T, Size>& callers) {
  for (std::size_t i = 0; i < Size; ++i) *settings[i].variable = callers[i];
}

} // namespace

IndexWalksOnly::IndexWalksOnly()
    : callers_switches_(exchange(kSwitches)), callers_numbers_(exchange(kNumbers)),
      callers_costs_(exchange(kCosts)) {
  ++walks;
}

IndexWalksOnly::~IndexWalksOnly() {
  --walks;
  restore(kSwitches, callers_switches_);
  restore(kNumbers, callers_numbers_);
  restore(kCosts, callers_costs_);
}

} // namespace jobq::pg
