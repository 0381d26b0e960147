// SQL as a client would run it: a text of one or more statements, in the session's own rights, with
// transactions of its own (VACUUM, CALL with COMMIT). For a process that has no client, outside of
// any transaction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/duration.hpp"
#include "pg/error.hpp"

namespace jobq::pg {

// Raises 42601 if the text is not SQL, or has no statement.
void require_sql(const std::string& text);

// What stops a command, looked at by its process from outside: at once when it is poked
// (background), and each second. A command that goes on nevertheless is ended with its process.
struct Limits {
  core::Microseconds deadline; // by the monotonic clock
  bool (*is_stopped)();        // called by a signal handler
};

enum class Stop { none, deadline, asked, leaving };

struct CommandEnd {
  std::optional<Error> error = std::nullopt; // its transaction was rolled back
  Stop stop = Stop::none;                    // why it was cancelled, if by us
  // Of the last statement:
  std::string tag = {}; // such as SELECT
  std::uint64_t rows = 0;
  std::optional<std::string> first_row = std::nullopt; // as a JSON object
  bool is_cut = false;                                 // that it was too long for it
};

// To be called once, when the process is connected.
void accept_commands();

// A text of several statements is one transaction, as a client's is, unless it has BEGIN and
// COMMIT; but each SET and RESET at its beginning takes effect by itself. What it leaves open is an
// error. The first row is kept up to so many bytes. Errors are kept in the caller's memory.
CommandEnd run_as_client(const std::string& command, const Limits& limits, std::size_t longest_row);

// Puts the session back to how it was when it connected: settings, role, temporary tables, locks,
// prepared statements. False: it could not, and its process is to end.
bool reset_session();

// Whether this process runs commands; may be called by a signal handler.
bool accepts_commands();

} // namespace jobq::pg
