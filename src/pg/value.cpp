#include "pg/value.hpp"

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

Datum make_text(const char* bytes, int length) {
  return PointerGetDatum(cstring_to_text_with_len(bytes, length));
}

// How the server stores a type: all that an array of it has to know.
struct Storage {
  int16 length;
  bool by_value;
  char alignment;
};

Storage storage_of(Oid type) {
  Storage storage{};
  get_typlenbyvalalign(type, &storage.length, &storage.by_value, &storage.alignment);
  return storage;
}

Datum copy(Datum datum, Oid type) {
  if (type == TEXTOID || type == JSONBOID) return datumCopy(datum, false, -1);
  Storage storage = storage_of(type);
  return datumCopy(datum, storage.by_value, storage.length);
}

Datum make_int8_array(Datum* elements, int count) {
  return PointerGetDatum(
      construct_array(elements, count, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

varlena* detoasted_text(Datum datum) { return PG_DETOAST_DATUM_PACKED(datum); }
ArrayType* detoasted_array(Datum datum) { return DatumGetArrayTypeP(datum); }
Jsonb* detoasted_json(Datum datum) { return DatumGetJsonbP(datum); }

struct Elements {
  Datum* data;
  int count;
};

Elements deconstruct(ArrayType* array) {
  Storage storage = storage_of(ARR_ELEMTYPE(array));
  Elements elements{};
  deconstruct_array(array, ARR_ELEMTYPE(array), storage.length, storage.by_value, storage.alignment,
                    &elements.data, nullptr, &elements.count);
  return elements;
}

template <typename Element, typename Convert>
std::vector<Element> converted(Datum datum, Convert convert) {
  Elements elements = guarded<deconstruct>(guarded<detoasted_array>(datum));
  std::vector<Element> result;
  result.reserve(static_cast<std::size_t>(elements.count));
  for (Datum element : std::span(elements.data, static_cast<std::size_t>(elements.count)))
    result.push_back(convert(element));
  return result;
}

Datum json_element(Jsonb* json, uint32 index) {
  return PointerGetDatum(JsonbValueToJsonb(getIthJsonbValueFromContainer(&json->root, index)));
}

Datum make_empty_json_object() { return DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")); }

Datum jsonb_of(const char* json) { return DirectFunctionCall1(jsonb_in, CStringGetDatum(json)); }

} // namespace

Value text(std::string_view bytes) {
  return {guarded<make_text>(bytes.data(), static_cast<int>(bytes.size())), false, TEXTOID};
}

Value copied(const Value& value) {
  bool is_number = value.type == INT8OID || value.type == TIMESTAMPTZOID || value.type == INT4OID;
  if (value.is_null || is_number) return value;
  return {guarded<copy>(value.datum, value.type), false, value.type};
}

Value int8_array(std::span<const std::int64_t> numbers) {
  std::vector<Datum> data;
  data.reserve(numbers.size());
  for (std::int64_t number : numbers) data.push_back(Int64GetDatum(number));
  Datum array = guarded<make_int8_array>(data.data(), static_cast<int>(data.size()));
  return {array, false, INT8ARRAYOID};
}

std::string_view view_of_text(Datum datum) {
  varlena* bytes = guarded<detoasted_text>(datum);
  return {VARDATA_ANY(bytes), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(bytes))};
}

ArrayFlaw flaw_of_array(Datum datum) {
  ArrayType* array = guarded<detoasted_array>(datum);
  if (ARR_NDIM(array) > 1) return ArrayFlaw::dimensions;
  if (ARR_HASNULL(array) && array_contains_nulls(array)) return ArrayFlaw::null_element;
  return ArrayFlaw::none;
}

std::vector<std::int64_t> int8_elements(Datum array) {
  return converted<std::int64_t>(array, [](Datum element) { return DatumGetInt64(element); });
}

std::vector<std::int32_t> int4_elements(Datum array) {
  return converted<std::int32_t>(array, [](Datum element) { return DatumGetInt32(element); });
}

std::vector<std::string_view> text_elements(Datum array) {
  return converted<std::string_view>(array, view_of_text);
}

std::optional<std::size_t> json_array_length(Datum jsonb) {
  Jsonb* json = guarded<detoasted_json>(jsonb);
  if (!JB_ROOT_IS_ARRAY(json) || JB_ROOT_IS_SCALAR(json)) return std::nullopt;
  return JB_ROOT_COUNT(json);
}

std::vector<Value> json_elements(Datum jsonb) {
  Jsonb* json = guarded<detoasted_json>(jsonb);
  std::vector<Value> elements;
  for (uint32 i = 0; i < JB_ROOT_COUNT(json); ++i)
    elements.push_back({guarded<json_element>(json, i), false, JSONBOID});
  return elements;
}

Value jsonb(const std::string& json) { return {guarded<jsonb_of>(json.c_str()), false, JSONBOID}; }

Value empty_json_object() { return {guarded<make_empty_json_object>(), false, JSONBOID}; }

} // namespace jobq::pg
