#include "pg/transaction.hpp"

namespace jobq::pg {

namespace {

bool has_written = false;

void at_transaction_event(XactEvent event, void*) {
  switch (event) {
  case XACT_EVENT_PRE_PREPARE:
    if (has_written)
      ereport(ERROR,
              (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
               errmsg("cannot PREPARE a transaction that has used a writing function of jobq"),
               errhint("Commit it, or call jobq's functions in a transaction of their own.")));
    break;
  case XACT_EVENT_COMMIT:
  case XACT_EVENT_ABORT:
  case XACT_EVENT_PREPARE:
    has_written = false;
    break;
  default:
    break;
  }
}

void begin_subtransaction() { BeginInternalSubTransaction(nullptr); }

} // namespace

void watch_transactions() { RegisterXactCallback(at_transaction_event, nullptr); }

void note_write() { has_written = true; }

// In a subtransaction the server no longer tells a block with a savepoint from a single statement
// that has one inside (plpgsql's EXCEPTION); but the block began before its statement did.
bool is_transaction_block() {
  if (GetCurrentTransactionNestLevel() == 1) return IsTransactionBlock();
  return GetCurrentTransactionStartTimestamp() < GetCurrentStatementStartTimestamp();
}

bool has_one_snapshot() { return IsolationUsesXactSnapshot(); }

void make_commit_durable() { ForceSyncCommit(); }

Subtransaction::Subtransaction() : memory_(CurrentMemoryContext), resources_(CurrentResourceOwner) {
  guarded<begin_subtransaction>();
  MemoryContextSwitchTo(memory_);
}

void Subtransaction::release() {
  guarded<ReleaseCurrentSubTransaction>();
  MemoryContextSwitchTo(memory_);
  CurrentResourceOwner = resources_;
}

void Subtransaction::roll_back() {
  guarded<RollbackAndReleaseCurrentSubTransaction>();
  MemoryContextSwitchTo(memory_);
  CurrentResourceOwner = resources_;
}

bool is_about_rows(const Error& error) {
  switch (ERRCODE_TO_CATEGORY(error.sqlstate())) {
  case ERRCODE_INVALID_TRANSACTION_STATE:
  case ERRCODE_TRANSACTION_ROLLBACK:
  case ERRCODE_INSUFFICIENT_RESOURCES:
  case ERRCODE_OPERATOR_INTERVENTION:
  case ERRCODE_SYSTEM_ERROR:
    return false;
  default:
    return error.sqlstate() != ERRCODE_LOCK_NOT_AVAILABLE;
  }
}

} // namespace jobq::pg
