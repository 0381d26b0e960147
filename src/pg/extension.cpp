#include "pg/extension.hpp"

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

constexpr const char* kName = "jobq";
constexpr std::size_t kLongestVersion = 64;

bool preloaded = false;

struct Installed {
  Oid oid; // invalid if the database does not have the extension
  Oid owner;
  char version[kLongestVersion];
};

Installed read_installed() {
  Installed installed{};
  Relation extensions = table_open(ExtensionRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
              CStringGetDatum(kName));
  SysScanDesc scan = systable_beginscan(extensions, ExtensionNameIndexId, true, nullptr, 1, &key);
  HeapTuple tuple = systable_getnext(scan);
  if (HeapTupleIsValid(tuple)) {
    auto* row = reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple));
    installed.oid = row->oid;
    installed.owner = row->extowner;
    bool is_null = false;
    Datum datum =
        heap_getattr(tuple, Anum_pg_extension_extversion, RelationGetDescr(extensions), &is_null);
    if (!is_null) text_to_cstring_buffer(DatumGetTextPP(datum), installed.version, kLongestVersion);
  }
  systable_endscan(scan);
  table_close(extensions, AccessShareLock);
  return installed;
}

// Another extension of the same name may have come while the lock was waited for.
Installed lock_installed() {
  for (;;) {
    Installed seen = read_installed();
    if (!OidIsValid(seen.oid)) return seen;
    LockDatabaseObject(ExtensionRelationId, seen.oid, 0, AccessShareLock);
    Installed held = read_installed();
    if (held.oid == seen.oid) return held;
    UnlockDatabaseObject(ExtensionRelationId, seen.oid, 0, AccessShareLock);
  }
}

void forbid_without_writes(Oid function) {
  if (!RecoveryInProgress() && !XactReadOnly && !IsInParallelMode()) return;
  char* name = get_func_name(function);
  const char* command = psprintf("%s.%s()", kName, name == nullptr ? "function" : name);
  PreventCommandDuringRecovery(command);
  PreventCommandIfReadOnly(command);
  PreventCommandIfParallelMode(command);
}

Oid find_relation(const char* name) {
  Oid oid = get_relname_relid(name, get_namespace_oid(kName, false));
  if (!OidIsValid(oid))
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                    errmsg("relation \"%s.%s\" does not exist", kName, name)));
  return oid;
}

} // namespace

void note_load() { preloaded = process_shared_preload_libraries_in_progress; }

bool is_preloaded() { return preloaded; }

void require_preload() {
  if (preloaded) return;
  raise({.sqlstate = SqlState::not_ready,
         .message = "jobq must be loaded at the server's start",
         .hint = "Put shared_preload_libraries = 'jobq' into postgresql.conf (add it to the list "
                 "if there is one) and restart the server."});
}

Oid require_fitting_version() {
  Installed installed = guarded<read_installed>();
  if (std::string(installed.version) == JOBQ_VERSION) return installed.owner;
  if (!OidIsValid(installed.oid))
    raise({.sqlstate = SqlState::not_ready,
           .message = "this database does not have the extension jobq",
           .hint = "Run CREATE EXTENSION jobq."});
  raise({.sqlstate = SqlState::not_ready,
         .message = std::string("extension jobq has version ") + installed.version +
                    ", the loaded library has " JOBQ_VERSION,
         .hint = "After a package update restart the server; then run ALTER EXTENSION jobq UPDATE "
                 "TO '" JOBQ_VERSION "' in each database that has it."});
}

Extension lock_extension() {
  Installed installed = guarded<lock_installed>();
  Fitness fitness = Fitness::other_version;
  if (!OidIsValid(installed.oid)) fitness = Fitness::absent;
  if (std::string(installed.version) == JOBQ_VERSION) fitness = Fitness::fits;
  return {.fitness = fitness, .owner = installed.owner};
}

bool is_extension_schema(Oid schema) { return schema == get_namespace_oid(kName, true); }

std::string installed_version() { return guarded<read_installed>().version; }

bool is_binary_upgrade() { return IsBinaryUpgrade; }

bool is_in_recovery() { return RecoveryInProgress(); }

void require_writes(Oid function) { guarded<forbid_without_writes>(function); }

Oid relation(const char* name) { return guarded<find_relation>(name); }

} // namespace jobq::pg
