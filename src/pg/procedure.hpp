// Procedures that commit while they run, so that they hold no snapshot, lock or old transaction
// while they sleep.
#pragma once

#include "pg/door.hpp"

namespace jobq::pg {

// As enter(), but with the caller's rights, and refused (25001) where nothing can be committed: in
// a transaction block, or called by a function. The transaction that goes on afterwards has the
// isolation level that the caller's are to have.
Datum enter_procedure(FunctionCallInfo fcinfo, Datum (*body)(Call&));

// Ends the transaction and begins the next one, READ COMMITTED whatever the default is. Nothing of
// the caller's rights may be switched at that moment.
void commit_and_go_on();

// How long the statement at hand may still take by statement_timeout, less a margin for a result to
// arrive; kForever if it has no limit.
core::Microseconds time_left_to_statement();

// The longest that a transaction may be kept open by a process that sleeps.
core::Microseconds longest_slice();

} // namespace jobq::pg

#define JOBQ_PROCEDURE(name, body)                                                                 \
  JOBQ_DOOR(name) { return ::jobq::pg::enter_procedure(fcinfo, body); }
