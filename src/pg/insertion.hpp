// Inserting rows: one by its values, many by one array a column, so that neither a batch nor a
// single row pays for the other.
#pragma once

#include <initializer_list>
#include <vector>

#include "pg/value.hpp"

namespace jobq::pg {

class Insertion {
 public:
  // table: with its schema. columns: their names, as SQL lists them. conflict: what follows, such
  // as ON CONFLICT DO NOTHING.
  constexpr Insertion(const char* table, const char* columns, const char* conflict = "")
      : table_(table), columns_(columns), conflict_(conflict) {}
  Insertion(const Insertion&) = delete;
  Insertion& operator=(const Insertion&) = delete;

 private:
  friend class NewRows;
  void run(std::span<const Value> cells, std::size_t width);
  void run_one(std::span<const Value> cells);
  void run_many(std::span<const Value> cells, std::size_t width);

  const char* table_;
  const char* columns_;
  const char* conflict_;
  SPIPlanPtr one_ = nullptr;
  SPIPlanPtr many_ = nullptr;
};

// Rows on their way into a table, all with the same columns.
class NewRows {
 public:
  explicit NewRows(Insertion& insertion) : insertion_(insertion) {}
  void add(std::initializer_list<Value> row) {
    width_ = row.size();
    cells_.insert(cells_.end(), row);
  }
  void insert() { insertion_.run(cells_, width_); }

 private:
  Insertion& insertion_;
  std::size_t width_ = 0;
  std::vector<Value> cells_; // row after row
};

} // namespace jobq::pg
