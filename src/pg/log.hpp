// The server's log: what it says of a transaction is said when that has committed, once, and of
// what was rolled back nothing.
#pragma once

#include <string>

namespace jobq::pg {

// To be called once, by _PG_init.
void watch_log();

// One line at the transaction's commit, never to the client.
void log_at_commit(std::string line);

// One line at once, of a process that has no client.
void log_now(const std::string& line);

} // namespace jobq::pg
