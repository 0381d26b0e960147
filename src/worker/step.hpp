// A manager's step: one short transaction, with what it needs before it touches a table.
#pragma once

#include <optional>

#include "pg/background.hpp"
#include "pg/extension.hpp"
#include "pg/owner.hpp"
#include "pg/turn.hpp"
#include "queue/agenda.hpp"

namespace jobq::worker {

// Whether the server as a whole is not to be written to (default_transaction_read_only), as hosts
// set it for a full disk. In the current transaction.
bool is_server_read_only();

// To be called before the first step. Raises what is to be tried again.
void fix_settings();

// Runs the body with the owner's rights and the extension locked, in DROP EXTENSION's order of
// locks: before any table. If the extension is not there or does not fit, nothing is done, and the
// manager is told to look at it. Returns the error for which it was rolled back.
template <typename Body>
std::optional<pg::Error> step(const char* what, Body body) {
  return pg::in_turn(what, [&] {
    pg::Extension extension = pg::lock_extension();
    if (extension.fitness != pg::Fitness::fits) {
      queue::tell_of_change();
      return;
    }
    const pg::OwnerRights rights(extension.owner);
    body();
  });
}

} // namespace jobq::worker
