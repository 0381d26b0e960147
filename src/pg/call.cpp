#include "pg/call.hpp"

#include <string>

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

Datum text_in(MemoryContext memory, const char* bytes, int length) {
  MemoryContext before = MemoryContextSwitchTo(memory);
  Datum result = PointerGetDatum(cstring_to_text_with_len(bytes, length));
  MemoryContextSwitchTo(before);
  return result;
}

struct RowMaking {
  FunctionCallInfo fcinfo;
  MemoryContext memory;
  const Value* values;
  int count;
};

Datum make_row(RowMaking making) {
  MemoryContext before = MemoryContextSwitchTo(making.memory);
  TupleDesc columns = nullptr;
  if (get_call_result_type(making.fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE ||
      columns->natts != making.count)
    elog(ERROR, "the procedure's parameters are not those of this version");
  auto* data = static_cast<Datum*>(palloc(sizeof(Datum) * static_cast<Size>(making.count)));
  auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * static_cast<Size>(making.count)));
  for (int i = 0; i < making.count; ++i) {
    data[i] = making.values[i].datum;
    nulls[i] = making.values[i].is_null;
  }
  Datum row = HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), data, nulls));
  MemoryContextSwitchTo(before);
  return row;
}

} // namespace

Value Call::value(Parameter parameter, Oid type) const {
  return {datum(parameter), is_null(parameter), type};
}

Datum Call::required(Parameter parameter) const {
  if (is_null(parameter))
    raise({.sqlstate = SqlState::null_value,
           .message = std::string(parameter.name) + " must not be NULL",
           .hint = "Give a value: this parameter has no default."});
  return datum(parameter);
}

Datum Call::required_array(Parameter parameter) const {
  Datum array = required(parameter);
  switch (flaw_of_array(array)) {
  case ArrayFlaw::none:
    return array;
  case ArrayFlaw::dimensions:
    raise({.sqlstate = SqlState::array_mismatch,
           .message = std::string(parameter.name) + " must have one dimension",
           .hint = "Pass a flat array."});
  case ArrayFlaw::null_element:
    raise({.sqlstate = SqlState::null_value,
           .message = std::string(parameter.name) + " must not contain NULL",
           .hint = "Leave the NULL elements out."});
  }
  return array;
}

std::int64_t Call::int8(Parameter parameter) const { return DatumGetInt64(required(parameter)); }

std::int32_t Call::int4(Parameter parameter) const { return DatumGetInt32(required(parameter)); }

std::string_view Call::text(Parameter parameter) const { return view_of_text(required(parameter)); }

std::optional<std::int32_t> Call::int4_or_null(Parameter parameter) const {
  if (is_null(parameter)) return std::nullopt;
  return DatumGetInt32(datum(parameter));
}

std::optional<std::string_view> Call::text_or_null(Parameter parameter) const {
  if (is_null(parameter)) return std::nullopt;
  return view_of_text(datum(parameter));
}

std::optional<bool> Call::boolean_or_null(Parameter parameter) const {
  if (is_null(parameter)) return std::nullopt;
  return DatumGetBool(datum(parameter));
}

std::optional<TimestampTz> Call::instant_or_null(Parameter parameter) const {
  if (is_null(parameter)) return std::nullopt;
  return DatumGetTimestampTz(datum(parameter));
}

std::optional<core::Interval> Call::interval_or_null(Parameter parameter) const {
  if (is_null(parameter)) return std::nullopt;
  const ::Interval* interval = DatumGetIntervalP(datum(parameter));
  return core::Interval{
      .microseconds = interval->time, .days = interval->day, .months = interval->month};
}

std::vector<std::int64_t> Call::int8s(Parameter parameter) const {
  return int8_elements(required_array(parameter));
}

std::vector<std::int32_t> Call::int4s(Parameter parameter) const {
  return int4_elements(required_array(parameter));
}

std::vector<std::string_view> Call::texts(Parameter parameter) const {
  return text_elements(required_array(parameter));
}

Datum Call::returns_null() const {
  fcinfo_->isnull = true;
  return 0;
}

Datum Call::returns_text(std::string_view text) const {
  return guarded<text_in>(callers_memory_, text.data(), static_cast<int>(text.size()));
}

Datum Call::returns_row(std::initializer_list<Value> values) const {
  return guarded<make_row>(RowMaking{.fcinfo = fcinfo_,
                                     .memory = callers_memory_,
                                     .values = values.begin(),
                                     .count = static_cast<int>(values.size())});
}

} // namespace jobq::pg
