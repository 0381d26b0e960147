#include "pg/databases.hpp"

#include "pg/error.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/pg_database.h"
}

namespace jobq::pg {

namespace {

struct FoundDatabase {
  Oid oid;
  NameData name;
};

struct Found {
  FoundDatabase* databases;
  std::size_t count;
};

// What DROP DATABASE leaves when it is interrupted, as its connection limit says.
constexpr int kInvalid = -2;

bool is_open(Form_pg_database database) {
  return database->datallowconn && !database->datistemplate && database->datconnlimit != kInvalid;
}

Found read_databases() {
  List* found = NIL;
  Relation relation = table_open(DatabaseRelationId, AccessShareLock);
  TableScanDesc scan = table_beginscan_catalog(relation, 0, nullptr);
  for (HeapTuple tuple = heap_getnext(scan, ForwardScanDirection); HeapTupleIsValid(tuple);
       tuple = heap_getnext(scan, ForwardScanDirection)) {
    auto* row = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple));
    if (!is_open(row)) continue;
    auto* database = static_cast<FoundDatabase*>(palloc(sizeof(FoundDatabase)));
    *database = {.oid = row->oid, .name = row->datname};
    found = lappend(found, database);
  }
  table_endscan(scan);
  table_close(relation, AccessShareLock);

  auto count = static_cast<std::size_t>(list_length(found));
  auto* databases = static_cast<FoundDatabase*>(palloc(sizeof(FoundDatabase) * (count + 1)));
  for (std::size_t i = 0; i < count; ++i)
    databases[i] = *static_cast<FoundDatabase*>(list_nth(found, static_cast<int>(i)));
  return {.databases = databases, .count = count};
}

bool look_up(Oid database) {
  HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
  if (!HeapTupleIsValid(tuple)) return false;
  bool open = is_open(reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple)));
  ReleaseSysCache(tuple);
  return open;
}

} // namespace

std::vector<Database> list_databases() {
  Found found = guarded<read_databases>();
  std::vector<Database> databases;
  for (std::size_t i = 0; i < found.count; ++i)
    databases.push_back({.oid = found.databases[i].oid, .name = NameStr(found.databases[i].name)});
  return databases;
}

bool is_worked_in(Oid database) { return guarded<look_up>(database); }

} // namespace jobq::pg
