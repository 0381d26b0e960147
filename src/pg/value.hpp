// SQL values on their way into a statement or out of a function: a datum, whether it is NULL, and
// its type. Trivially copyable; by-reference data lives in the memory context it was made in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pg/postgres.hpp"

namespace jobq::pg {

struct Value {
  Datum datum = 0;
  bool is_null = true;
  Oid type = InvalidOid;
};

inline Value null(Oid type) { return {.type = type}; }
inline Value int8(std::int64_t number) { return {Int64GetDatum(number), false, INT8OID}; }
inline Value int2(std::int32_t number) {
  return {Int16GetDatum(static_cast<int16>(number)), false, INT2OID};
}
inline Value int4(std::int32_t number) { return {Int32GetDatum(number), false, INT4OID}; }
inline Value float4(double number) {
  return {Float4GetDatum(static_cast<float>(number)), false, FLOAT4OID};
}
inline Value float8(double number) { return {Float8GetDatum(number), false, FLOAT8OID}; }
inline Value boolean(bool truth) { return {BoolGetDatum(truth), false, BOOLOID}; }
inline Value instant(TimestampTz when) {
  return {TimestampTzGetDatum(when), false, TIMESTAMPTZOID};
}
inline Value oid(Oid number) { return {ObjectIdGetDatum(number), false, OIDOID}; }
// NULL for an instant or length that is "for ever".
inline Value int8_or_null(std::optional<std::int64_t> number) {
  return number ? int8(*number) : null(INT8OID);
}
inline Value int4_or_null(std::optional<std::int32_t> number) {
  return number ? int4(*number) : null(INT4OID);
}
inline Value instant_or_null(std::optional<TimestampTz> when) {
  return when ? instant(*when) : null(TIMESTAMPTZOID);
}
Value text(std::string_view bytes);

// The same value in the current memory context.
Value copied(const Value& value);

Value int8_array(std::span<const std::int64_t> numbers);

// The bytes of a text value; they live as long as the value's memory context.
std::string_view view_of_text(Datum datum);

// The elements of an int8, int4 or text array of one dimension without NULLs; the two flaws are
// for the caller to name.
enum class ArrayFlaw { none, dimensions, null_element };
ArrayFlaw flaw_of_array(Datum datum);
std::vector<std::int64_t> int8_elements(Datum array);
std::vector<std::int32_t> int4_elements(Datum array);
std::vector<std::string_view> text_elements(Datum array);

// A JSON array's length, or nothing if the value is no array; and its elements, in order.
std::optional<std::size_t> json_array_length(Datum jsonb);
std::vector<Value> json_elements(Datum jsonb);

Value empty_json_object();

// JSON's text as JSONB; raises what is wrong with it.
Value jsonb(const std::string& json);

} // namespace jobq::pg
