// Whether this library can serve: loaded at the server's start, and of the version of the
// extension that the database has.
#pragma once

#include <string>

#include "pg/postgres.hpp"

namespace jobq::pg {

// To be called once, by _PG_init.
void note_load();
bool is_preloaded();
bool is_binary_upgrade();
bool is_in_recovery();

// Raise 55000 with what to put where, or 25006 where the server or the transaction only reads.
void require_preload();
Oid require_fitting_version(); // returns the extension's owner
void require_writes(Oid function);

// Empty if the database does not have the extension.
std::string installed_version();

// Whether the extension is there and of this library's version, locked until the transaction's end
// so that nobody drops it meanwhile: in DROP EXTENSION's order of locks, before any table.
enum class Fitness { fits, absent, other_version };
struct Extension {
  Fitness fitness;
  Oid owner;
};
Extension lock_extension();

bool is_extension_schema(Oid schema);

// The OID of a relation of the extension's schema; raises if there is none.
Oid relation(const char* name);

} // namespace jobq::pg
