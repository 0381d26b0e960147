#include "pg/first_row.hpp"

extern "C" {
#include "access/detoast.h"
#include "catalog/pg_collation.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "utils/json.h"
}

namespace jobq::pg {

namespace {

struct Column {
  Form_pg_attribute attribute;
  Datum value;
};

bool is_text(Form_pg_attribute attribute) {
  char category = 0;
  bool is_preferred = false;
  get_type_category_preferred(attribute->atttypid, &category, &is_preferred);
  return category == TYPCATEGORY_STRING && attribute->attlen == -1;
}

void append_clipped(StringInfo out, const char* bytes, int length, std::size_t most) {
  int clipped = pg_mbcliplen(bytes, length, static_cast<int>(most));
  escape_json(out, pnstrdup(bytes, static_cast<Size>(clipped)));
}

// Not more of it is read than is kept.
void append_beginning(StringInfo out, const Column& column, std::size_t most) {
  if (!is_text(column.attribute)) return appendStringInfoString(out, "null");
  struct varlena* slice =
      detoast_attr_slice(reinterpret_cast<struct varlena*>(DatumGetPointer(column.value)), 0,
                         static_cast<int32>(most) + pg_database_encoding_max_length());
  append_clipped(out, VARDATA_ANY(slice), static_cast<int>(VARSIZE_ANY_EXHDR(slice)), most);
}

text* to_json_of(const Column& column) {
  Oid type = column.attribute->atttypid;
  Const* argument =
      makeNullConst(type, column.attribute->atttypmod, column.attribute->attcollation);
  FuncExpr* call = makeFuncExpr(F_TO_JSON, JSONOID, list_make1(argument), InvalidOid, InvalidOid,
                                COERCE_EXPLICIT_CALL);
  FmgrInfo function;
  fmgr_info(F_TO_JSON, &function);
  fmgr_info_set_expr(reinterpret_cast<Node*>(call), &function);
  return DatumGetTextPP(FunctionCall1Coll(&function, DEFAULT_COLLATION_OID, column.value));
}

bool is_longer(const Column& column, std::size_t most) {
  return column.attribute->attlen == -1 && toast_raw_datum_size(column.value) > most + VARHDRSZ;
}

// Returns whether it was cut.
bool append_value(StringInfo out, const Column& column, std::size_t most) {
  if (is_longer(column, most)) {
    append_beginning(out, column, most);
    return true;
  }
  text* json = to_json_of(column);
  int length = static_cast<int>(VARSIZE_ANY_EXHDR(json));
  bool is_cut = static_cast<std::size_t>(length) > most;
  if (is_cut)
    append_clipped(out, VARDATA_ANY(json), length, most);
  else
    appendBinaryStringInfo(out, VARDATA_ANY(json), length);
  return is_cut;
}

// A value gets half of the room that is left, the last one all of it: so a long one keeps no short
// one out.
void keep_row(FirstRow& first, TupleTableSlot* slot) {
  slot_getallattrs(slot);
  StringInfoData out;
  initStringInfo(&out);
  const int last = first.columns->natts - 1;
  for (int i = 0; i <= last; ++i) {
    Form_pg_attribute attribute = TupleDescAttr(first.columns, i);
    if (attribute->attisdropped) continue;
    appendStringInfoString(&out, out.len == 0 ? "{" : ", ");
    escape_json(&out, NameStr(attribute->attname));
    appendStringInfoString(&out, ": ");
    auto used = static_cast<std::size_t>(out.len);
    std::size_t left = used < first.longest ? first.longest - used : 0;
    if (slot->tts_isnull[i])
      appendStringInfoString(&out, "null");
    else
      first.is_cut |=
          append_value(&out, {attribute, slot->tts_values[i]}, i == last ? left : left / 2);
  }
  appendStringInfoString(&out, out.len == 0 ? "{}" : "}");
  first.json = out.data;
}

bool receive(TupleTableSlot* slot, DestReceiver* self) {
  auto& first = *reinterpret_cast<FirstRow*>(self);
  if (first.json != nullptr) return true;
  MemoryContext before = MemoryContextSwitchTo(first.memory);
  keep_row(first, slot);
  MemoryContextSwitchTo(before);
  return true;
}

// The names are the statement's: a slot may have none.
void begin(DestReceiver* self, int, TupleDesc columns) {
  auto& first = *reinterpret_cast<FirstRow*>(self);
  first.columns = columns;
  first.json = nullptr;
  first.is_cut = false;
}

void ignore(DestReceiver*) {}

} // namespace

FirstRow empty_first_row(MemoryContext memory, std::size_t longest) {
  FirstRow first{};
  first.receiver.receiveSlot = receive;
  first.receiver.rStartup = begin;
  first.receiver.rShutdown = ignore;
  first.receiver.rDestroy = ignore;
  first.receiver.mydest = DestNone;
  first.memory = memory;
  first.longest = longest;
  return first;
}

} // namespace jobq::pg
