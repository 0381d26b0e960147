// The transaction that a call runs in.
#pragma once

#include <optional>
#include <utility>

#include "pg/error.hpp"

namespace jobq::pg {

// To be called once, by _PG_init.
void watch_transactions();

// PREPARE TRANSACTION is refused after this, as the server does after NOTIFY.
void note_write();

bool is_transaction_block();
bool has_one_snapshot(); // REPEATABLE READ and SERIALIZABLE
void make_commit_durable();
void make_commit_lazy(); // its loss in a crash would harm nobody

class Subtransaction {
 public:
  Subtransaction();
  void release();
  void roll_back();

 private:
  MemoryContext memory_;
  ResourceOwner resources_;
};

// Runs body in a subtransaction. Nothing returned: it was kept; else it was rolled back, and the
// error is the server's word on why.
template <typename Body>
std::optional<Error> in_subtransaction(Body body) {
  Subtransaction subtransaction;
  try {
    body();
    subtransaction.release();
    return std::nullopt;
  } catch (const Error& error) {
    Error copy = error;
    subtransaction.roll_back();
    return copy;
  } catch (...) {
    subtransaction.roll_back();
    throw;
  }
}

// Runs body in a subtransaction that is rolled back in any case: for a look with settings of its
// own. Returns the error that it ended with, unless that is the session's cancellation or end.
template <typename Body>
std::optional<Error> in_vain(Body body) {
  Subtransaction subtransaction;
  try {
    body();
    subtransaction.roll_back();
    return std::nullopt;
  } catch (const Error& error) {
    Error copy = error;
    subtransaction.roll_back();
    if (copy.sqlstate() == ERRCODE_QUERY_CANCELED) throw copy;
    return copy;
  }
}

// A setting until the end of the (sub)transaction.
void set_for_transaction(const char* name, const char* value);

// Whether an error speaks of the rows at hand: anything but cancellation, conflicts between
// transactions, missing resources, and a transaction or server that takes no writes.
bool is_about_rows(const Error& error);

} // namespace jobq::pg
