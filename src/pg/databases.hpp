// The server's databases, as every process can read them, connected to one or to none.
#pragma once

#include <string>
#include <vector>

#include "pg/postgres.hpp"

namespace jobq::pg {

struct Database {
  Oid oid;
  std::string name;
};

// Those that are to be worked in: templates are left alone, so are those that let nobody in.
std::vector<Database> list_databases();

bool is_worked_in(Oid database);

} // namespace jobq::pg
