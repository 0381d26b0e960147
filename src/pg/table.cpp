#include "pg/table.hpp"

#include <algorithm>
#include <cstring>

#include "pg/compat.hpp"
#include "pg/error.hpp"
#include "pg/extension.hpp"

extern "C" {
#include "access/tableam.h"
#include "executor/executor.h"
#include "utils/lsyscache.h"
}

namespace jobq::pg {

namespace {

constexpr std::size_t kMostSlots = 100; // rows of one multi-insert

// A column that somebody added and dropped again stays in the row, always NULL.
void check_shape(Relation relation, const Shape* shape) {
  TupleDesc columns = RelationGetDescr(relation);
  auto width = static_cast<int>(shape->columns.size());
  bool fits = columns->natts >= width;
  for (int i = 0; fits && i < columns->natts; ++i) {
    Form_pg_attribute column = TupleDescAttr(columns, i);
    fits = i < width ? std::strcmp(NameStr(column->attname), shape->columns[i]) == 0
                     : column->attisdropped;
  }
  if (!fits)
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg("table jobq.%s does not have the columns of this version", shape->name),
                    errhint("Undo the change to the table, or restore the database.")));
}

// Triggers, and the foreign keys that are made of them, would be passed over in silence.
void check_triggers(Relation relation, const Shape* shape) {
  if (relation->trigdesc == nullptr || shape->has_triggers) return;
  const Trigger& first = relation->trigdesc->triggers[0];
  const char* other = OidIsValid(first.tgconstrrelid) ? get_rel_name(first.tgconstrrelid) : nullptr;
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("table jobq.%s has a trigger or foreign key, or one refers to it", shape->name),
           other != nullptr ? errdetail("A foreign key binds it to table \"%s\".", other)
                            : errdetail("Trigger \"%s\".", first.tgname),
           errhint("Drop it: jobq's tables take none. Keep a job's id in a column of your "
                   "own without REFERENCES.")));
}

Relation open_table(Oid oid, const Shape* shape) {
  Relation relation = table_open(oid, RowExclusiveLock);
  check_shape(relation, shape);
  check_triggers(relation, shape);
  return relation;
}

EState* make_state() { return CreateExecutorState(); }

ResultRelInfo* open_indexes(Relation relation, EState* state) {
  MemoryContext before = MemoryContextSwitchTo(state->es_query_cxt);
  auto* indexes = makeNode(ResultRelInfo);
  InitResultRelInfo(indexes, relation, 0, nullptr, 0);
  ExecOpenIndices(indexes, false);
  MemoryContextSwitchTo(before);
  return indexes;
}

void close_table(Relation relation, ResultRelInfo* indexes, EState* state) {
  if (indexes != nullptr) ExecCloseIndices(indexes);
  if (state != nullptr) {
    ExecResetTupleTable(state->es_tupleTable, false);
    FreeExecutorState(state);
  }
  table_close(relation, NoLock);
}

struct Insert {
  Relation relation;
  ResultRelInfo* indexes;
  EState* state;
  const Value* cells;
  std::size_t width;
  std::size_t count;
};

void fill(TupleTableSlot* slot, const Value* cells, std::size_t width) {
  TupleDesc columns = slot->tts_tupleDescriptor;
  ExecClearTuple(slot);
  for (std::size_t i = 0; i < width; ++i) {
    if (cells[i].type != TupleDescAttr(columns, i)->atttypid)
      elog(ERROR, "value of column \"%s\" is of another type",
           NameStr(TupleDescAttr(columns, i)->attname));
    slot->tts_values[i] = cells[i].datum;
    slot->tts_isnull[i] = cells[i].is_null;
  }
  for (int i = static_cast<int>(width); i < columns->natts; ++i) slot->tts_isnull[i] = true;
  ExecStoreVirtualTuple(slot);
}

void insert_into_indexes(const Insert& insert, TupleTableSlot* slot) {
  if (insert.indexes->ri_NumIndices == 0) return;
  slot->tts_tableOid = RelationGetRelid(insert.relation);
  list_free(insert_index_tuples(insert.indexes, slot, insert.state));
  ResetPerTupleExprContext(insert.state);
}

void insert_one(Insert insert) {
  TupleTableSlot* slot = table_slot_create(insert.relation, &insert.state->es_tupleTable);
  fill(slot, insert.cells, insert.width);
  simple_table_tuple_insert(insert.relation, slot);
  insert_into_indexes(insert, slot);
}

// One record in the write-ahead log for the rows of a page, where single inserts write one each.
void insert_many(Insert insert) {
  std::size_t slot_count = std::min(insert.count, kMostSlots);
  auto** slots = static_cast<TupleTableSlot**>(palloc(slot_count * sizeof(TupleTableSlot*)));
  for (std::size_t i = 0; i < slot_count; ++i)
    slots[i] = table_slot_create(insert.relation, &insert.state->es_tupleTable);

  for (std::size_t done = 0; done < insert.count;) {
    CHECK_FOR_INTERRUPTS();
    std::size_t now = std::min(slot_count, insert.count - done);
    for (std::size_t i = 0; i < now; ++i)
      fill(slots[i], insert.cells + (done + i) * insert.width, insert.width);
    MemoryContext before = MemoryContextSwitchTo(GetPerTupleMemoryContext(insert.state));
    table_multi_insert(insert.relation, slots, static_cast<int>(now), GetCurrentCommandId(true), 0,
                       nullptr);
    MemoryContextSwitchTo(before);
    for (std::size_t i = 0; i < now; ++i) insert_into_indexes(insert, slots[i]);
    done += now;
  }
}

} // namespace

Table::Table(const Shape& shape)
    : relation_(guarded<open_table>(pg::relation(shape.name), &shape)),
      width_(shape.columns.size()) {}

Table::~Table() {
  if (orderly_.holds()) certainly<close_table>(relation_, indexes_, state_);
}

void Table::insert(const NewRows& rows) {
  if (rows.empty()) return;
  if (state_ == nullptr) state_ = guarded<make_state>();
  if (indexes_ == nullptr) indexes_ = guarded<open_indexes>(relation_, state_);
  Insert insert = {.relation = relation_,
                   .indexes = indexes_,
                   .state = state_,
                   .cells = rows.cells().data(),
                   .width = width_,
                   .count = rows.cells().size() / width_};
  if (insert.count == 1)
    guarded<insert_one>(insert);
  else
    guarded<insert_many>(insert);
}

} // namespace jobq::pg
