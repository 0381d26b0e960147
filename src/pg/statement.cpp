#include "pg/statement.hpp"

#include <array>
#include <span>

#include "pg/error.hpp"
#include "pg/planner.hpp"

namespace jobq::pg {

namespace {

constexpr std::size_t kMostParameters = 32;

struct Outcome {
  SPITupleTable* table;
  std::uint64_t count;
};

void check(int code, const char* what) {
  if (code < 0) elog(ERROR, "%s: %s", what, SPI_result_code_string(code));
}

SPIPlanPtr prepare(const char* sql, Oid* types, int count) {
  SPIPlanPtr plan = SPI_prepare_cursor(sql, count, types, CURSOR_OPT_GENERIC_PLAN);
  if (plan == nullptr) check(SPI_result, sql);
  check(SPI_keepplan(plan), sql);
  return plan;
}

struct Execution {
  SPIPlanPtr plan;
  Datum* data;
  char* nulls;
  std::uint64_t most;
};

// What this call wrote before, by whatever way, is there for the statement to see.
Outcome execute(Execution execution) {
  CommandCounterIncrement();
  check(SPI_execute_plan(execution.plan, execution.data, execution.nulls, false,
                         static_cast<long>(execution.most)),
        "statement failed");
  return {.table = SPI_tuptable, .count = SPI_processed};
}

// The values' types are the plan's.
SPIPlanPtr make_plan(const char* sql, std::span<const Value> values) {
  std::array<Oid, kMostParameters> types;
  std::size_t count = 0;
  for (const Value& value : values) types.at(count++) = value.type;
  return guarded<prepare>(sql, types.data(), static_cast<int>(count));
}

Outcome run_plan(SPIPlanPtr plan, std::span<const Value> values, std::uint64_t most) {
  std::array<Datum, kMostParameters> data;
  std::array<char, kMostParameters> nulls;
  std::size_t count = 0;
  for (const Value& value : values) {
    data.at(count) = value.datum;
    nulls.at(count++) = value.is_null ? 'n' : ' ';
  }
  return guarded<execute>(
      Execution{.plan = plan, .data = data.data(), .nulls = nulls.data(), .most = most});
}

} // namespace

Rows::~Rows() {
  if (table_ != nullptr) SPI_freetuptable(table_);
}

Value Rows::at(std::uint64_t row, int column) const {
  Value value;
  value.datum = heap_getattr(table_->vals[row], column + 1, table_->tupdesc, &value.is_null);
  value.type = TupleDescAttr(table_->tupdesc, column)->atttypid;
  return value;
}

std::int64_t Rows::int8(std::uint64_t row, int column) const {
  return DatumGetInt64(at(row, column).datum);
}

std::int32_t Rows::int4(std::uint64_t row, int column) const {
  return DatumGetInt32(at(row, column).datum);
}

bool Rows::boolean(std::uint64_t row, int column) const {
  return DatumGetBool(at(row, column).datum);
}

std::optional<std::int64_t> Rows::int8_or_null(std::uint64_t row, int column) const {
  Value value = at(row, column);
  if (value.is_null) return std::nullopt;
  return DatumGetInt64(value.datum);
}

std::optional<std::int32_t> Rows::int4_or_null(std::uint64_t row, int column) const {
  Value value = at(row, column);
  if (value.is_null) return std::nullopt;
  return DatumGetInt32(value.datum);
}

std::string_view Rows::text(std::uint64_t row, int column) const {
  return view_of_text(at(row, column).datum);
}

Rows Statement::run(std::span<const Value> values, std::uint64_t most) {
  const IndexWalksOnly walks;
  return execute(values, most);
}

Rows Statement::run_freely(std::initializer_list<Value> values) { return execute(values, 0); }

Rows Statement::execute(std::span<const Value> values, std::uint64_t most) {
  if (plan_ == nullptr) plan_ = make_plan(sql_, values);
  Outcome outcome = run_plan(plan_, values, most);
  return {outcome.table, outcome.count};
}

} // namespace jobq::pg
