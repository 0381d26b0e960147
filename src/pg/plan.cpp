#include "pg/plan.hpp"

#include <array>

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

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

Outcome execute(Execution execution) {
  check(SPI_execute_plan(execution.plan, execution.data, execution.nulls, false,
                         static_cast<long>(execution.most)),
        "statement failed");
  return {.table = SPI_tuptable, .count = SPI_processed};
}

} // namespace

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

} // namespace jobq::pg
