#include "pg/result_set.hpp"

#include <array>

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

constexpr std::size_t kMostColumns = 24;

// A function that returns rows of one plain type has no row type of its own to look up.
void begin_set(FunctionCallInfo fcinfo, bool is_composite) {
  InitMaterializedSRF(fcinfo, is_composite ? 0 : MAT_SRF_USE_EXPECTED_DESC);
}

bool returns_composite(FunctionCallInfo fcinfo) {
  return get_call_result_type(fcinfo, nullptr, nullptr) == TYPEFUNC_COMPOSITE;
}

void put_row(ReturnSetInfo* info, Datum* data, bool* nulls) {
  tuplestore_putvalues(info->setResult, info->setDesc, data, nulls);
}

} // namespace

ResultSet::ResultSet(const Call& call)
    : info_(reinterpret_cast<ReturnSetInfo*>(call.fcinfo()->resultinfo)) {
  bool is_composite = guarded<returns_composite>(call.fcinfo());
  guarded<begin_set>(call.fcinfo(), is_composite);
}

void ResultSet::add(std::span<const Value> values) {
  std::array<Datum, kMostColumns> data;
  std::array<bool, kMostColumns> nulls;
  std::size_t count = 0;
  for (const Value& value : values) {
    data.at(count) = value.datum;
    nulls.at(count) = value.is_null;
    ++count;
  }
  guarded<put_row>(info_, data.data(), nulls.data());
}

} // namespace jobq::pg
