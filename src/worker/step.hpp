// A manager's step: one short transaction, with what it needs before it touches a table.
#pragma once

#include <optional>

#include "pg/background.hpp"
#include "pg/extension.hpp"
#include "pg/owner.hpp"
#include "pg/transaction.hpp"
#include "pg/turn.hpp"
#include "queue/agenda.hpp"

namespace jobq::worker {

// To be called before the first step. Raises what is to be tried again.
void fix_settings();

// What is lost with a primary and done anew on its standby need not wait for that one.
enum class Commit { local, as_set };

// Runs the body with the owner's rights and the extension locked, in DROP EXTENSION's order of
// locks: before any table. If the extension is not there or does not fit, nothing is done, and the
// manager is told to look at it. Returns the error for which it was rolled back.
template <typename Body>
std::optional<pg::Error> step(const char* what, Body body, Commit commit = Commit::local) {
  return pg::in_turn(what, [&] {
    pg::Extension extension = pg::lock_extension();
    if (extension.fitness != pg::Fitness::fits) {
      queue::tell_of_change();
      return;
    }
    if (commit == Commit::local) pg::make_commit_local();
    const pg::OwnerRights rights(extension.owner);
    body();
  });
}

} // namespace jobq::worker
