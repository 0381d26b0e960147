// The one place that knows what differs between the majors 15 to 18.
#pragma once

#include "pg/postgres.hpp"

extern "C" {
#include "executor/executor.h"
}

// Before 16 the server marks no symbol as exported on Linux; the module hides all but its doors.
#define JOBQ_EXPORT __attribute__((visibility("default")))

#if PG_VERSION_NUM >= 180000
#define JOBQ_MODULE_MAGIC PG_MODULE_MAGIC_EXT(.name = "jobq", .version = JOBQ_VERSION)
#else
#define JOBQ_MODULE_MAGIC PG_MODULE_MAGIC
#endif

namespace jobq::pg {

// A row's entries in all indexes of its table; a duplicate in a unique one raises.
inline List* insert_index_tuples(ResultRelInfo* indexes, TupleTableSlot* slot, EState* state) {
#if PG_VERSION_NUM >= 160000
  return ExecInsertIndexTuples(indexes, slot, state, false, false, nullptr, NIL, false);
#else
  return ExecInsertIndexTuples(indexes, slot, state, false, false, nullptr, NIL);
#endif
}

inline IndexScanDesc begin_index_scan(Relation table, Relation index, Snapshot snapshot, int keys) {
#if PG_VERSION_NUM >= 180000
  return index_beginscan(table, index, snapshot, nullptr, keys, 0);
#else
  return index_beginscan(table, index, snapshot, keys, 0);
#endif
}

} // namespace jobq::pg
