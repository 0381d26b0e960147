#include "pg/index_walk.hpp"

#include <array>
#include <limits>

#include "pg/compat.hpp"
#include "pg/error.hpp"
#include "pg/extension.hpp"
#include "pg/snapshot.hpp"

extern "C" {
#include "access/relscan.h"
#include "access/tableam.h"
#include "storage/procarray.h"
}

namespace jobq::pg {

namespace {

constexpr std::size_t kMostKeys = 4;

Relation open_index(Oid oid) { return index_open(oid, AccessShareLock); }

TupleTableSlot* make_slot(Relation relation) { return table_slot_create(relation, nullptr); }

struct Seek {
  Relation table;
  Relation index;
  IndexScanDesc scan; // may be null
  ScanKeyData* keys;
  int count;
  bool wants_entries;
};

IndexScanDesc begin_scan(Seek seek) {
  IndexScanDesc scan = seek.scan;
  if (scan == nullptr)
    scan = begin_index_scan(seek.table, seek.index, GetActiveSnapshot(), seek.count);
  scan->xs_want_itup = seek.wants_entries;
  index_rescan(scan, seek.keys, seek.count, nullptr, 0);
  return scan;
}

bool next_row(IndexScanDesc scan, TupleTableSlot* slot) {
  CHECK_FOR_INTERRUPTS();
  return index_getnext_slot(scan, ForwardScanDirection, slot);
}

bool last_row(IndexScanDesc scan, TupleTableSlot* slot) {
  return index_getnext_slot(scan, BackwardScanDirection, slot);
}

bool next_row_within(IndexScanDesc scan, TupleTableSlot* slot, int* entries) {
  while (*entries > 0) {
    CHECK_FOR_INTERRUPTS();
    if (index_getnext_tid(scan, ForwardScanDirection) == nullptr) return false;
    --*entries;
    if (index_fetch_heap(scan, slot)) return true;
  }
  return false;
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

RegProcedure equals_of(Oid type) {
  return type == INT8OID ? F_INT8EQ : type == INT4OID ? F_INT4EQ : F_INT2EQ;
}

RegProcedure at_least_of(Oid type) {
  return type == INT8OID ? F_INT8GE : type == INT4OID ? F_INT4GE : F_INT2GE;
}

void close_walk(IndexScanDesc scan, TupleTableSlot* slot, Relation index) {
  if (scan != nullptr) index_endscan(scan);
  ExecDropSingleTupleTableSlot(slot);
  index_close(index, NoLock);
}

void check_serializable(const char* what) {
  if (IsolationUsesXactSnapshot())
    ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                    errmsg("could not serialize access due to concurrent %s", what)));
}

Erasure erase_row(Relation table, ItemPointerData place, bool wait) {
  TM_FailureData failure;
  TM_Result result = delete_row(table, &place, wait, &failure);
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

IndexWalk::IndexWalk(Table& table, const char* index)
    : table_(table.relation()), index_(guarded<open_index>(pg::relation(index))),
      slot_(guarded<make_slot>(table_)) {}

IndexWalk::~IndexWalk() {
  if (orderly_.holds()) certainly<close_walk>(scan_, slot_, index_);
}

void IndexWalk::end() {
  if (scan_ != nullptr) guarded<index_endscan>(scan_);
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
                                   .count = static_cast<int>(keys.size()),
                                   .wants_entries = wants_entries_});
}

void IndexWalk::seek_equal(std::span<const Value> equal, std::optional<Value> least) {
  std::array<Key, kMostKeys> keys;
  int count = 0;
  for (const Value& value : equal) {
    keys.at(count) = {count + 1, BTEqualStrategyNumber, equals_of(value.type), value.datum};
    ++count;
  }
  if (least) {
    keys.at(count) = {count + 1, BTGreaterEqualStrategyNumber, at_least_of(least->type),
                      least->datum};
    ++count;
  }
  last_ = -1;
  begin(std::span(keys.data(), static_cast<std::size_t>(count)));
}

bool IndexWalk::seek(std::initializer_list<Value> keys, std::optional<Value> least) {
  seek_equal(keys, least);
  return next();
}

bool IndexWalk::seek_last(std::initializer_list<Value> keys) {
  seek_equal(keys, std::nullopt);
  return guarded<last_row>(scan_, slot_);
}

bool IndexWalk::seek_within(std::initializer_list<Value> keys, Value least, int& entries) {
  if (!wants_entries_) end();
  wants_entries_ = true;
  seek_equal(keys, least);
  return next_within(entries);
}

bool IndexWalk::next_within(int& entries) {
  return guarded<next_row_within>(scan_, slot_, &entries);
}

// Of an int8; those who ask know that there is an entry.
std::int64_t IndexWalk::entry(int column) const {
  bool is_null = false;
  return DatumGetInt64(index_getattr(scan_->xs_itup, column + 1, scan_->xs_itupdesc, &is_null));
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

bool IndexWalk::is_being_deleted() const { return holder_of(slot_).deletes; }

Erasure IndexWalk::erase(Waiting waiting) {
  return guarded<erase_row>(table_, slot_->tts_tid, waiting == Waiting::wait);
}

} // namespace jobq::pg
