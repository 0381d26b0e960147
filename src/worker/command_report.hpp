// How a command ended, in the words that are kept of it.
#pragma once

#include <string>

#include "core/duration.hpp"
#include "pg/client_command.hpp"
#include "pg/value.hpp"

namespace jobq::worker {

// {"command": "INSERT", "rows": 3}, of the last statement; what returned rows has the first one as
// "row", and "is_cut" if that was too long. In the current transaction.
pg::Value result_of(const pg::CommandEnd& end);

// SQLSTATE: message, then lines of DETAIL, HINT and CONTEXT.
std::string failure_of(const pg::CommandEnd& end, core::Microseconds timeout);

} // namespace jobq::worker
