#include "pg/command.hpp"

#include <cstring>

#include "pg/compat.hpp"
#include "pg/door.hpp"
#include "pg/extension.hpp"

extern "C" {
#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
}

namespace jobq::pg {

namespace {

ProcessUtility_hook_type next_utility_hook = nullptr;
object_access_hook_type next_access_hook = nullptr;
void (*note_copy)() = nullptr;
void (*note_extension)() = nullptr;
const DatabaseWatch* database_watch = nullptr;

const DefElem* option_of(List* options, const char* name) {
  ListCell* cell = nullptr;
  foreach (cell, options) {
    auto* option = lfirst_node(DefElem, cell);
    if (std::strcmp(option->defname, name) == 0) return option;
  }
  return nullptr;
}

// The name of the database that the command needs for itself, or null.
const char* needed_database(Node* command) {
  switch (nodeTag(command)) {
  case T_DropdbStmt:
    return reinterpret_cast<DropdbStmt*>(command)->dbname;
  case T_RenameStmt: {
    auto* rename = reinterpret_cast<RenameStmt*>(command);
    return rename->renameType == OBJECT_DATABASE ? rename->subname : nullptr;
  }
  case T_AlterDatabaseStmt: {
    auto* alter = reinterpret_cast<AlterDatabaseStmt*>(command);
    return option_of(alter->options, "tablespace") != nullptr ? alter->dbname : nullptr;
  }
  case T_CreatedbStmt: {
    const DefElem* source =
        option_of(reinterpret_cast<CreatedbStmt*>(command)->options, "template");
    return source != nullptr && source->arg != nullptr ? defGetString(const_cast<DefElem*>(source))
                                                       : "template1";
  }
  default:
    return nullptr;
  }
}

bool changes_databases(Node* command) {
  return IsA(command, CreatedbStmt) || IsA(command, DropdbStmt) || IsA(command, AlterDatabaseStmt);
}

// Nobody can stop a database's manager by a command that the server would refuse him: in a
// transaction block it refuses all but a new name, and of one's own database all but a copy.
Oid database_to_hold(Node* command, ProcessUtilityContext context) {
  bool is_in_block = context != PROCESS_UTILITY_TOPLEVEL || IsTransactionBlock();
  if (is_in_block && !IsA(command, RenameStmt)) return InvalidOid;
  const char* name = needed_database(command);
  if (name == nullptr) return InvalidOid;
  Oid database = get_database_oid(name, true);
  if (!OidIsValid(database)) return InvalidOid;
  if (database == MyDatabaseId && !IsA(command, CreatedbStmt)) return InvalidOid;
  return owns_database(database, GetUserId()) ? database : InvalidOid;
}

// The table that the command copies rows into, as it calls it; or null.
RangeVar* copied_table(Node* command) {
  if (!IsA(command, CopyStmt)) return nullptr;
  auto* copy = reinterpret_cast<CopyStmt*>(command);
  return copy->is_from ? copy->relation : nullptr;
}

void note_copied(RangeVar* name) {
  Oid table = RangeVarGetRelid(name, NoLock, true);
  if (OidIsValid(table) && is_extension_schema(get_rel_namespace(table))) note_copy();
}

void run_utility(PlannedStmt* statement, const char* query, bool read_only_tree,
                 ProcessUtilityContext context, ParamListInfo parameters,
                 QueryEnvironment* environment, DestReceiver* destination,
                 QueryCompletion* completion) {
  auto run = next_utility_hook != nullptr ? next_utility_hook : standard_ProcessUtility;
  Node* command = statement->utilityStmt;
  // A procedure that rolls back takes the statement that called it along: it is read before it
  // runs.
  bool changes = changes_databases(command);
  RangeVar* copied = copied_table(command);
  Oid needed = database_to_hold(command, context);
  if (OidIsValid(needed)) enter_hook(database_watch->hold, needed);
  if (copied != nullptr) note_copied(copied);
  run(statement, query, read_only_tree, context, parameters, environment, destination, completion);
  if (changes) database_watch->changed();
  if (copied != nullptr) note_copied(copied);
}

void see_object(ObjectAccessType access, Oid catalog, Oid object, int part, void* argument) {
  if (next_access_hook != nullptr) next_access_hook(access, catalog, object, part, argument);
  if (catalog == ExtensionRelationId &&
      (access == OAT_POST_CREATE || access == OAT_POST_ALTER || access == OAT_DROP))
    note_extension();
}

} // namespace

void watch_commands() {
  next_utility_hook = ProcessUtility_hook;
  ProcessUtility_hook = run_utility;
  next_access_hook = object_access_hook;
  object_access_hook = see_object;
}

void on_copy_into_extension(void (*note)()) { note_copy = note; }

void on_extension_change(void (*note)()) { note_extension = note; }

void on_database_command(const DatabaseWatch& watch) { database_watch = &watch; }

} // namespace jobq::pg
