// The one place that knows what differs between the majors 15 to 19.
#pragma once

#include <utility>

#include "pg/postgres.hpp"

extern "C" {
#include "access/tableam.h"
#include "catalog/pg_database.h"
#include "executor/executor.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "utils/acl.h"
#include "utils/wait_event.h"
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
#if PG_VERSION_NUM >= 190000
  return ExecInsertIndexTuples(indexes, state, 0, slot, NIL, nullptr);
#elif PG_VERSION_NUM >= 160000
  return ExecInsertIndexTuples(indexes, slot, state, false, false, nullptr, NIL, false);
#else
  return ExecInsertIndexTuples(indexes, slot, state, false, false, nullptr, NIL);
#endif
}

inline IndexScanDesc begin_index_scan(Relation table, Relation index, Snapshot snapshot, int keys) {
#if PG_VERSION_NUM >= 190000
  return index_beginscan(table, index, snapshot, nullptr, keys, 0, SO_NONE);
#elif PG_VERSION_NUM >= 180000
  return index_beginscan(table, index, snapshot, nullptr, keys, 0);
#else
  return index_beginscan(table, index, snapshot, keys, 0);
#endif
}

inline TM_Result delete_row(Relation table, ItemPointer place, bool wait, TM_FailureData* failure) {
  CommandId command = GetCurrentCommandId(true);
#if PG_VERSION_NUM >= 190000
  return table_tuple_delete(table, place, command, 0, GetActiveSnapshot(), InvalidSnapshot, wait,
                            failure);
#else
  return table_tuple_delete(table, place, command, GetActiveSnapshot(), InvalidSnapshot, wait,
                            failure, false);
#endif
}

inline void run_portal(Portal portal, DestReceiver* receiver, QueryCompletion* completion) {
#if PG_VERSION_NUM >= 180000
  PortalRun(portal, FETCH_ALL, true, receiver, receiver, completion);
#else
  PortalRun(portal, FETCH_ALL, true, true, receiver, receiver, completion);
#endif
}

// To be called once: the planner then calls `ours` with each table that it has looked up, after
// what was hooked in before.
template <void (*ours)(RelOptInfo*)>
void watch_tables() {
#if PG_VERSION_NUM >= 190000
  static build_simple_rel_hook_type next = nullptr;
  next = std::exchange(build_simple_rel_hook,
                       [](PlannerInfo* root, RelOptInfo* relation, RangeTblEntry* entry) {
                         if (next != nullptr) next(root, relation, entry);
                         if (entry->rtekind == RTE_RELATION) ours(relation);
                       });
#else
  static get_relation_info_hook_type next = nullptr;
  next = std::exchange(get_relation_info_hook,
                       [](PlannerInfo* root, Oid table, bool is_parent, RelOptInfo* relation) {
                         if (next != nullptr) next(root, table, is_parent, relation);
                         ours(relation);
                       });
#endif
}

// This process among all those that shared memory knows.
inline int process_number() {
#if PG_VERSION_NUM >= 170000
  return MyProcNumber;
#else
  return MyProc->pgprocno;
#endif
}

// What pg_stat_activity shows as wait_event of a process that sleeps for us.
inline uint32 wait_event(const char* name) {
#if PG_VERSION_NUM >= 170000
  return WaitEventExtensionNew(name);
#else
  (void)name;
  return PG_WAIT_EXTENSION;
#endif
}

// The length in milliseconds after which the server ends a transaction, or 0.
inline int transaction_timeout() {
#if PG_VERSION_NUM >= 170000
  return TransactionTimeout;
#else
  return 0;
#endif
}

inline bool owns_database(Oid database, Oid role) {
#if PG_VERSION_NUM >= 160000
  return object_ownercheck(DatabaseRelationId, database, role);
#else
  return pg_database_ownercheck(database, role);
#endif
}

} // namespace jobq::pg
