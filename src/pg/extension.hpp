// Whether this library can serve: loaded at the server's start, and of the version of the
// extension that the database has.
#pragma once

#include "pg/postgres.hpp"

namespace jobq::pg {

// To be called once, by _PG_init.
void note_load();
bool is_preloaded();

// Raise 55000 with what to put where, or 25006 where the server or the transaction only reads.
void require_preload();
void require_fitting_version();
void require_writes(Oid function);

// The OID of a relation of the extension's schema; raises if there is none.
Oid relation(const char* name);

} // namespace jobq::pg
