#include "pg/statement.hpp"

#include "pg/error.hpp"
#include "pg/plan.hpp"
#include "pg/planner.hpp"

namespace jobq::pg {

namespace {

double estimate(const char* sql) {
  SPIPlanPtr plan = SPI_prepare_cursor(sql, 0, nullptr, 0);
  if (plan == nullptr) elog(ERROR, "%s: %s", sql, SPI_result_code_string(SPI_result));
  CachedPlan* cached = SPI_plan_get_cached_plan(plan);
  if (cached == nullptr) elog(ERROR, "statement has no plan: %s", sql);
  double rows = linitial_node(PlannedStmt, cached->stmt_list)->planTree->plan_rows;
  ReleaseCachedPlan(cached, nullptr); // a plan that is not kept has no owner
  SPI_freeplan(plan);
  return rows;
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

Rows Statement::run(std::initializer_list<Value> values, std::uint64_t most) {
  const IndexWalksOnly walks;
  return execute(values, most);
}

Rows Statement::run_freely(std::initializer_list<Value> values) { return execute(values, 0); }

Rows Statement::execute(std::span<const Value> values, std::uint64_t most) {
  if (plan_ == nullptr) plan_ = make_plan(sql_, values);
  Outcome outcome = run_plan(plan_, values, most);
  return {outcome.table, outcome.count};
}

double estimated_rows(const char* sql) { return guarded<estimate>(sql); }

} // namespace jobq::pg
