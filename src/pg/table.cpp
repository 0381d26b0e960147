#include "pg/table.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "pg/compat.hpp"
#include "pg/error.hpp"
#include "pg/extension.hpp"
#include "pg/snapshot.hpp"

extern "C" {
#include "access/relscan.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "storage/procarray.h"
}

namespace jobq::pg {

namespace {

constexpr std::size_t kMostKeys = 4;
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

Relation open_table(Oid oid, const Shape* shape) {
  Relation relation = table_open(oid, RowExclusiveLock);
  check_shape(relation, shape);
  return relation;
}

Relation open_index(Oid oid) { return index_open(oid, AccessShareLock); }

EState* make_state() { return CreateExecutorState(); }

ResultRelInfo* open_indexes(Relation relation, EState* state) {
  MemoryContext before = MemoryContextSwitchTo(state->es_query_cxt);
  auto* indexes = makeNode(ResultRelInfo);
  InitResultRelInfo(indexes, relation, 0, nullptr, 0);
  ExecOpenIndices(indexes, false);
  MemoryContextSwitchTo(before);
  return indexes;
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

TupleTableSlot* make_slot(Relation relation) { return table_slot_create(relation, nullptr); }

struct Seek {
  Relation table;
  Relation index;
  IndexScanDesc scan; // may be null
  ScanKeyData* keys;
  int count;
};

IndexScanDesc begin_scan(Seek seek) {
  IndexScanDesc scan = seek.scan;
  if (scan == nullptr)
    scan = begin_index_scan(seek.table, seek.index, GetActiveSnapshot(), seek.count);
  index_rescan(scan, seek.keys, seek.count, nullptr, 0);
  return scan;
}

bool next_row(IndexScanDesc scan, TupleTableSlot* slot) {
  CHECK_FOR_INTERRUPTS();
  return index_getnext_slot(scan, ForwardScanDirection, slot);
}

// What the row's header says of who deletes or locks it.
struct Holder {
  TransactionId transaction; // invalid: nobody, or more than one
  bool deletes;
};

Holder holder_of(TupleTableSlot* slot) {
  bool should_free = false;
  HeapTupleHeader row = ExecFetchSlotHeapTuple(slot, false, &should_free)->t_data;
  if ((row->t_infomask & (HEAP_XMAX_INVALID | HEAP_XMAX_IS_MULTI)) != 0)
    return {.transaction = InvalidTransactionId, .deletes = false};
  return {.transaction = HeapTupleHeaderGetRawXmax(row),
          .deletes = !HEAP_XMAX_IS_LOCKED_ONLY(row->t_infomask)};
}

// In one snapshot for all, a deletion that was committed since is an error, which erase() raises.
bool has_row(Holder holder) {
  if (TransactionIdIsCurrentTransactionId(holder.transaction)) return false;
  if (TransactionIdIsInProgress(holder.transaction)) return true;
  return holder.deletes && !IsolationUsesXactSnapshot() &&
         TransactionIdDidCommit(holder.transaction);
}

void check_serializable(const char* what) {
  if (IsolationUsesXactSnapshot())
    ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                    errmsg("could not serialize access due to concurrent %s", what)));
}

Erasure erase_row(Relation table, ItemPointerData place, bool wait) {
  TM_FailureData failure;
  TM_Result result =
      table_tuple_delete(table, &place, GetCurrentCommandId(true), GetActiveSnapshot(),
                         InvalidSnapshot, wait, &failure, false);
  switch (result) {
  case TM_Ok:
    return Erasure::done;
  case TM_BeingModified:
  case TM_WouldBlock:
    return Erasure::held;
  case TM_SelfModified:
    return Erasure::gone;
  case TM_Deleted:
    check_serializable("delete");
    return Erasure::gone;
  case TM_Updated:
    check_serializable("update");
    return Erasure::changed;
  case TM_Invisible:
    break;
  }
  elog(ERROR, "unexpected result %d of a deletion", result);
}

} // namespace

Table::Table(const Shape& shape)
    : relation_(guarded<open_table>(pg::relation(shape.name), &shape)),
      width_(shape.columns.size()) {}

Table::~Table() {
  if (!orderly_.holds()) return;
  if (indexes_ != nullptr) ExecCloseIndices(indexes_);
  if (state_ != nullptr) {
    ExecResetTupleTable(state_->es_tupleTable, false);
    FreeExecutorState(state_);
  }
  table_close(relation_, NoLock);
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

IndexWalk::IndexWalk(Table& table, const char* index)
    : table_(table.relation()), index_(guarded<open_index>(pg::relation(index))),
      slot_(guarded<make_slot>(table_)) {}

IndexWalk::~IndexWalk() {
  if (!orderly_.holds()) return;
  end();
  ExecDropSingleTupleTableSlot(slot_);
  index_close(index_, NoLock);
}

void IndexWalk::end() {
  if (scan_ != nullptr) index_endscan(scan_);
  scan_ = nullptr;
}

struct IndexWalk::Key {
  int column; // of the index, from 1
  StrategyNumber strategy;
  RegProcedure compare;
  Datum datum;
};

void IndexWalk::begin(std::span<const Key> keys) {
  ExecClearTuple(slot_);
  bool fits = scan_ != nullptr && view_ == FreshSnapshot::current() &&
              scan_->numberOfKeys == static_cast<int>(keys.size());
  if (!fits) end();
  view_ = FreshSnapshot::current();
  std::array<ScanKeyData, kMostKeys> data;
  for (std::size_t i = 0; i < keys.size(); ++i)
    ScanKeyInit(&data.at(i), static_cast<AttrNumber>(keys[i].column), keys[i].strategy,
                keys[i].compare, keys[i].datum);
  scan_ = guarded<begin_scan>(Seek{.table = table_,
                                   .index = index_,
                                   .scan = scan_,
                                   .keys = data.data(),
                                   .count = static_cast<int>(keys.size())});
}

bool IndexWalk::seek(std::initializer_list<Value> values) {
  std::array<Key, kMostKeys> keys;
  int count = 0;
  for (const Value& value : values) {
    RegProcedure equals = value.type == INT8OID ? F_INT8EQ : F_INT4EQ;
    keys.at(count) = {count + 1, BTEqualStrategyNumber, equals, value.datum};
    ++count;
  }
  last_ = -1;
  begin(std::span(keys.data(), static_cast<std::size_t>(count)));
  return next();
}

// The scan is bounded, so that dead entries between one key and the next cost no more than a few
// descents; and it is begun anew rather than stepped on over many rows that nobody asked for.
bool IndexWalk::find(std::int64_t key) {
  constexpr std::int64_t kRange = 255;
  constexpr int kMostSteps = 4;

  bool is_ahead = view_ == FreshSnapshot::current() && asked_ <= key && key <= last_;
  asked_ = key;
  for (int step = 0; is_ahead && has_row_ && int8(0) < key; ++step) {
    is_ahead = step < kMostSteps;
    if (is_ahead) has_row_ = next();
  }
  if (!is_ahead) {
    last_ = key > std::numeric_limits<std::int64_t>::max() - kRange ? key : key + kRange;
    const Key keys[] = {{1, BTGreaterEqualStrategyNumber, F_INT8GE, Int64GetDatum(key)},
                        {1, BTLessEqualStrategyNumber, F_INT8LE, Int64GetDatum(last_)}};
    begin(keys);
    has_row_ = next();
  }
  return has_row_ && int8(0) == key;
}

bool IndexWalk::next() { return guarded<next_row>(scan_, slot_); }

// Raises nothing: the columns were checked when the table was opened.
Value IndexWalk::at(int column) const {
  Value value;
  value.datum = slot_getattr(slot_, column + 1, &value.is_null);
  value.type = TupleDescAttr(slot_->tts_tupleDescriptor, column)->atttypid;
  return value;
}

std::optional<std::int64_t> IndexWalk::int8_or_null(int column) const {
  Value value = at(column);
  return value.is_null ? std::nullopt : std::optional(DatumGetInt64(value.datum));
}

std::optional<std::int32_t> IndexWalk::int4_or_null(int column) const {
  Value value = at(column);
  return value.is_null ? std::nullopt : std::optional(DatumGetInt32(value.datum));
}

bool IndexWalk::is_held() {
  Holder holder = holder_of(slot_); // only reads the row
  if (!TransactionIdIsValid(holder.transaction)) return false;
  if (holder.transaction == holder_) return true;
  if (!guarded<has_row>(holder)) return false;
  holder_ = holder.transaction;
  return true;
}

Erasure IndexWalk::erase(Waiting waiting) {
  return guarded<erase_row>(table_, slot_->tts_tid, waiting == Waiting::wait);
}

} // namespace jobq::pg
