#include "pg/transaction.hpp"

namespace jobq::pg {

namespace {

bool has_written = false;

// Whether the client opened a block with BEGIN that has not ended, and whether the one that ends
// now opens the next (AND CHAIN).
bool is_in_block = false;
bool will_chain = false;
ProcessUtility_hook_type next_utility_hook = nullptr;

// A procedure that rolls back takes the statement that called it along: all that is needed of it is
// read before it runs.
void run_utility(PlannedStmt* statement, const char* query, bool read_only_tree,
                 ProcessUtilityContext context, ParamListInfo parameters,
                 QueryEnvironment* environment, DestReceiver* destination,
                 QueryCompletion* completion) {
  auto run = next_utility_hook != nullptr ? next_utility_hook : standard_ProcessUtility;
  const TransactionStmt* transaction =
      IsA(statement->utilityStmt, TransactionStmt)
          ? reinterpret_cast<TransactionStmt*>(statement->utilityStmt)
          : nullptr;
  const bool begins = transaction != nullptr && (transaction->kind == TRANS_STMT_BEGIN ||
                                                 transaction->kind == TRANS_STMT_START);
  const bool chains = transaction != nullptr && transaction->chain;
  run(statement, query, read_only_tree, context, parameters, environment, destination, completion);
  if (transaction == nullptr) return; // what it points to may be gone
  if (begins) is_in_block = true;
  will_chain = chains;
}

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
    is_in_block = std::exchange(will_chain, false);
    break;
  default:
    break;
  }
}

void set_locally(const char* name, const char* value) {
  set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, ERROR, false);
}

void begin_subtransaction() { BeginInternalSubTransaction(nullptr); }

} // namespace

void watch_transactions() {
  RegisterXactCallback(at_transaction_event, nullptr);
  next_utility_hook = ProcessUtility_hook;
  ProcessUtility_hook = run_utility;
}

void note_write() { has_written = true; }

// In a subtransaction the server no longer tells a block with a savepoint from a single statement
// that has a handler inside (plpgsql's EXCEPTION).
bool is_transaction_block() {
  return GetCurrentTransactionNestLevel() == 1 ? IsTransactionBlock() : is_in_block;
}

bool has_one_snapshot() { return IsolationUsesXactSnapshot(); }

void make_commit_lazy() { set_for_transaction("synchronous_commit", "off"); }

void set_for_transaction(const char* name, const char* value) { guarded<set_locally>(name, value); }

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
