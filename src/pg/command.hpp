// Commands of the server that jobq has to know of, seen where the server carries them out.
#pragma once

#include "pg/postgres.hpp"

namespace jobq::pg {

// To be called once, by _PG_init.
void watch_commands();

// COPY ... FROM puts rows into a table of the extension's schema: called before, and again after
// it, as the name may have come to mean another table; its commit is still to come.
void on_copy_into_extension(void (*note)());

// An extension was created, changed or dropped, by whatever command; its commit is still to come.
void on_extension_change(void (*note)());

// Commands that need a database for themselves: DROP, RENAME and SET TABLESPACE, and CREATE
// DATABASE for its template. `hold` is called before one, if the server will not refuse it to this
// role, and may raise. `changed` is called after each command that made, changed or dropped a
// database; its commit is still to come.
struct DatabaseWatch {
  void (*hold)(Oid database);
  void (*changed)();
};
void on_database_command(const DatabaseWatch& watch);

} // namespace jobq::pg
