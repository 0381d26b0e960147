// Rows of a table by an index, read and deleted where they stand, without the executor. What a walk
// sees is what the FreshSnapshot around it shows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "pg/table.hpp"
#include "pg/unwinding.hpp"
#include "pg/value.hpp"

namespace jobq::pg {

enum class Erasure {
  done,    // the row is deleted
  held,    // another transaction has it, and was not waited for
  gone,    // another transaction has deleted it
  changed, // another transaction has changed it: look again with a newer snapshot
};

// Rows of a table that have given keys, in the order of an index.
class IndexWalk {
 public:
  IndexWalk(Table& table, const char* index);
  ~IndexWalk();
  IndexWalk(const IndexWalk&) = delete;
  IndexWalk& operator=(const IndexWalk&) = delete;

  // To the first row whose leading index columns equal the keys (int8, int4 or int2), and whose
  // next one is at least so much, if that is given. False: none.
  bool seek(std::initializer_list<Value> keys, std::optional<Value> least = std::nullopt);
  bool next();
  // To the last row of those.
  bool seek_last(std::initializer_list<Value> keys);

  // The same for who must come to an end soon where many entries lead to no row: at most so many of
  // the index's entries are looked at, and `entries` falls by each. False: there is no further row,
  // or no further step (entries is 0): then the walk stands at an entry, whose columns entry()
  // gives.
  bool seek_within(std::initializer_list<Value> keys, Value least, int& entries);
  bool next_within(int& entries);
  std::int64_t entry(int column) const;

  // To the row with this key in the table's first column, an int8, by its unique index. Keys that
  // ascend by little are found by stepping on from the last one, without a new descent.
  bool find(std::int64_t key);

  // Of the row that the walk stands at; by-reference data live until it moves. Columns count from
  // 0.
  Value at(int column) const;
  std::int64_t int8(int column) const { return DatumGetInt64(at(column).datum); }
  std::int32_t int4(int column) const { return DatumGetInt32(at(column).datum); }
  std::int32_t int2(int column) const { return DatumGetInt16(at(column).datum); }
  bool boolean(int column) const { return DatumGetBool(at(column).datum); }
  std::optional<std::int64_t> int8_or_null(int column) const;
  std::optional<std::int32_t> int4_or_null(int column) const;
  // A cheap look before erase(): true if another transaction has the row, or has deleted it.
  bool is_held();
  // Of a row that is held: whether by its deletion, or by a lock that may leave it as it is.
  bool is_being_deleted() const;
  // In REPEATABLE READ and SERIALIZABLE `gone` and `changed` are an error, 40001, instead.
  enum class Waiting { wait, pass };
  Erasure erase(Waiting waiting);

 private:
  struct Key;
  void seek_equal(std::span<const Value> equal, std::optional<Value> least);
  void begin(std::span<const Key> keys);
  void end();

  Relation table_;
  Relation index_;
  TupleTableSlot* slot_;
  IndexScanDesc scan_ = nullptr;
  std::uint64_t view_ = 0;     // of the scan
  bool wants_entries_ = false; // the scan gives the entries' columns
  std::int64_t asked_ = 0;     // of find(): the last key, the highest one of the scan, and
  std::int64_t last_ = -1;     // whether it stands at a row
  bool has_row_ = false;
  TransactionId holder_ = InvalidTransactionId; // who was last found to have a row
  OrderlyExit orderly_;
};

} // namespace jobq::pg
