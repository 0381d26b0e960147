// One call of an SQL function: its arguments, read by the rules that hold for all of them (NULL
// where there is a default means the default; where there is none it is an error that names the
// parameter), and its result.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "pg/value.hpp"

namespace jobq::pg {

struct Parameter {
  int position;
  const char* name;
};

class Call {
 public:
  Call(FunctionCallInfo fcinfo, MemoryContext callers_memory, Oid caller = InvalidOid)
      : fcinfo_(fcinfo), callers_memory_(callers_memory), caller_(caller) {}

  FunctionCallInfo fcinfo() const { return fcinfo_; }
  MemoryContext callers_memory() const { return callers_memory_; }
  // The role that calls; of procedures it is not known.
  Oid caller() const { return caller_; }

  bool is_null(Parameter parameter) const { return fcinfo_->args[parameter.position].isnull; }
  Value value(Parameter parameter, Oid type) const;

  void require(Parameter parameter) const { required(parameter); }
  std::int64_t int8(Parameter parameter) const;
  std::int32_t int4(Parameter parameter) const;
  std::string_view text(Parameter parameter) const;
  std::optional<std::int32_t> int4_or_null(Parameter parameter) const;
  std::optional<std::string_view> text_or_null(Parameter parameter) const;
  std::optional<bool> boolean_or_null(Parameter parameter) const;
  std::optional<TimestampTz> instant_or_null(Parameter parameter) const;
  std::optional<core::Interval> interval_or_null(Parameter parameter) const;

  // Arrays of one dimension without NULLs; anything else is an error.
  std::vector<std::int64_t> int8s(Parameter parameter) const;
  std::vector<std::int32_t> int4s(Parameter parameter) const;
  std::vector<std::string_view> texts(Parameter parameter) const;

  Datum returns_null() const;
  Datum returns_nothing() const { return 0; }
  Datum returns(bool truth) const { return BoolGetDatum(truth); }
  Datum returns(std::int64_t number) const { return Int64GetDatum(number); }
  Datum returns_text(std::string_view text) const;
  // A row of the function's own columns: what a procedure's INOUT parameters are.
  Datum returns_row(std::initializer_list<Value> values) const;

 private:
  Datum required(Parameter parameter) const;
  Datum required_array(Parameter parameter) const;
  Datum datum(Parameter parameter) const { return fcinfo_->args[parameter.position].value; }

  FunctionCallInfo fcinfo_;
  MemoryContext callers_memory_;
  Oid caller_;
};

} // namespace jobq::pg
