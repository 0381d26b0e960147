// SQL from inside: a statement is planned once a session, generically, and kept. It may be planned
// again at any time, so it names everything with its schema, operators too: the caller's
// search_path must not decide what runs with the owner's rights.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "pg/value.hpp"

namespace jobq::pg {

// What a statement returned. Columns count from 0. By-reference values live as long as the Rows.
class Rows {
 public:
  Rows(SPITupleTable* table, std::uint64_t count) : table_(table), count_(count) {}
  Rows(Rows&& other) noexcept : table_(other.table_), count_(other.count_) {
    other.table_ = nullptr;
  }
  Rows& operator=(Rows&&) = delete;
  ~Rows();

  std::uint64_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Value at(std::uint64_t row, int column) const;
  std::int64_t int8(std::uint64_t row, int column) const;
  std::int32_t int4(std::uint64_t row, int column) const;
  bool boolean(std::uint64_t row, int column) const;
  std::optional<std::int64_t> int8_or_null(std::uint64_t row, int column) const;
  std::optional<std::int32_t> int4_or_null(std::uint64_t row, int column) const;
  std::string_view text(std::uint64_t row, int column) const;

 private:
  SPITupleTable* table_;
  std::uint64_t count_;
};

class Statement {
 public:
  constexpr explicit Statement(const char* sql) : sql_(sql) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Runs with a new snapshot (in READ COMMITTED), index walks only. `most` stops a SELECT after so
  // many rows, and its row locks with it; 0 is no limit. The first run's types are the statement's.
  Rows run(std::initializer_list<Value> values, std::uint64_t most = 0) {
    return run(std::span<const Value>(values.begin(), values.size()), most);
  }
  Rows run(std::span<const Value> values, std::uint64_t most = 0);

  // For reports over whole tables: the planner is free.
  Rows run_freely(std::initializer_list<Value> values);

 private:
  Rows execute(std::span<const Value> values, std::uint64_t most);

  const char* sql_;
  SPIPlanPtr plan_ = nullptr;
};

} // namespace jobq::pg
