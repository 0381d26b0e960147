#include "pg/turn.hpp"

#include "pg/background.hpp"

extern "C" {
#include "pgstat.h"
}

namespace jobq::pg {

namespace {

// Whatever the defaults of the session's role and database are.
void begin_transaction() {
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  XactIsoLevel = XACT_READ_COMMITTED;
  XactReadOnly = RecoveryInProgress();
  XactDeferrable = false;
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  PushActiveSnapshot(GetTransactionSnapshot());
}

void end_transaction() {
  SPI_finish();
  PopActiveSnapshot();
  CommitTransactionCommand();
}

// Statistics of the tables go out now and then: autovacuum goes by them.
void report() { pgstat_report_stat(false); }

} // namespace

void Turn::begin(const char* what) {
  show_busy(what);
  guarded<begin_transaction>();
}

void Turn::commit() {
  guarded<end_transaction>();
  MemoryContextSwitchTo(memory_);
  guarded<report>();
  show_idle();
}

void Turn::roll_back() {
  certainly<AbortCurrentTransaction>();
  MemoryContextSwitchTo(memory_);
  certainly<report>();
  show_idle();
}

} // namespace jobq::pg
