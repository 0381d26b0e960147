// A table of the extension, opened to be written, or walked by an index (index_walk), without the
// executor. Constraints and triggers have no say here, so what is written must be right by itself;
// indexes, unique ones too, are kept as ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "pg/unwinding.hpp"
#include "pg/value.hpp"

namespace jobq::pg {

// Name and columns of a table, in the order of the install script; checked at every opening.
struct Shape {
  const char* name;
  std::span<const char* const> columns;
  bool has_triggers = false; // of its own; then it is only read
};

// Rows on their way into a table.
class NewRows {
 public:
  // A value for each column, in order and of its type.
  void add(std::initializer_list<Value> row) { cells_.insert(cells_.end(), row); }
  bool empty() const { return cells_.empty(); }
  std::span<const Value> cells() const { return cells_; }

 private:
  std::vector<Value> cells_; // row after row
};

class Table {
 public:
  explicit Table(const Shape& shape);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  void insert(const NewRows& rows);

  Relation relation() const { return relation_; }

 private:
  Relation relation_;
  std::size_t width_;
  ResultRelInfo* indexes_ = nullptr; // opened by the first insert
  EState* state_ = nullptr;
  OrderlyExit orderly_;
};

} // namespace jobq::pg
