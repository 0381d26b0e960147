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

  // To the first row whose leading index columns equal the keys (int8 or int4). False: none.
  bool seek(std::initializer_list<Value> keys);
  bool next();

  // To the row with this key in the table's first column, an int8, by its unique index. Keys that
  // ascend by little are found by stepping on from the last one, without a new descent.
  bool find(std::int64_t key);

  // Of the row that the walk stands at; by-reference data live until it moves. Columns count from
  // 0.
  Value at(int column) const;
  std::int64_t int8(int column) const { return DatumGetInt64(at(column).datum); }
  std::int32_t int4(int column) const { return DatumGetInt32(at(column).datum); }
  bool boolean(int column) const { return DatumGetBool(at(column).datum); }
  std::optional<std::int64_t> int8_or_null(int column) const;
  std::optional<std::int32_t> int4_or_null(int column) const;
  // A cheap look before erase(): true if another transaction has the row, or has deleted it.
  bool is_held();
  // In REPEATABLE READ and SERIALIZABLE `gone` and `changed` are an error, 40001, instead.
  enum class Waiting { wait, pass };
  Erasure erase(Waiting waiting);

 private:
  struct Key;
  void begin(std::span<const Key> keys);
  void end();

  Relation table_;
  Relation index_;
  TupleTableSlot* slot_;
  IndexScanDesc scan_ = nullptr;
  std::uint64_t view_ = 0; // of the scan
  std::int64_t asked_ = 0; // of find(): the last key, the highest one of the scan, and
  std::int64_t last_ = -1; // whether it stands at a row
  bool has_row_ = false;
  TransactionId holder_ = InvalidTransactionId; // who was last found to have a row
  OrderlyExit orderly_;
};

} // namespace jobq::pg
