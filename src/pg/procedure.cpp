#include "pg/procedure.hpp"

#include <algorithm>
#include <string>

#include "pg/bridge.hpp"
#include "pg/clock.hpp"
#include "pg/compat.hpp"
#include "pg/error.hpp"
#include "pg/extension.hpp"

namespace jobq::pg {

namespace {

constexpr core::Microseconds kMillisecond = 1000;
constexpr core::Microseconds kMargin = 100 * kMillisecond;
constexpr core::Microseconds kLongestSlice = core::kSecond;

bool can_commit(FunctionCallInfo fcinfo) {
  return fcinfo->context != nullptr && IsA(fcinfo->context, CallContext) &&
         !reinterpret_cast<CallContext*>(fcinfo->context)->atomic;
}

const char* name_of(FunctionCallInfo fcinfo) { return get_func_name(fcinfo->flinfo->fn_oid); }

void require_commits(FunctionCallInfo fcinfo) {
  if (can_commit(fcinfo)) return;
  raise({.sqlstate = SqlState::active_transaction,
         .message = std::string("jobq.") + guarded<name_of>(fcinfo) +
                    "() cannot run inside a transaction block",
         .detail = "It would hold the transaction's snapshot and locks while it sleeps.",
         .hint = "Turn autocommit on and CALL it as a statement of its own; procedures that call "
                 "it must have neither SET nor SECURITY DEFINER, nor call it where EXCEPTION is "
                 "handled."});
}

void connect() {
  if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT) elog(ERROR, "SPI_connect_ext failed");
}

void finish() {
  if (SPI_finish() != SPI_OK_FINISH) elog(ERROR, "SPI_finish failed");
}

void commit() {
  SPI_commit();
  XactIsoLevel = XACT_READ_COMMITTED;
  InvalidateCatalogSnapshot();
}

} // namespace

Datum enter_procedure(FunctionCallInfo fcinfo, Datum (*body)(Call&)) {
  return bridged([&] {
    require_preload();
    require_commits(fcinfo);
    require_writes(fcinfo->flinfo->fn_oid);
    require_fitting_version();

    Call call(fcinfo, CurrentMemoryContext);
    guarded<connect>();
    Datum result = body(call);
    if (XactIsoLevel != DefaultXactIsoLevel) guarded<SPI_commit>();
    guarded<finish>();
    return result;
  });
}

void commit_and_go_on() { guarded<commit>(); }

core::Microseconds time_left_to_statement() {
  if (StatementTimeout <= 0) return core::kForever;
  core::Microseconds spent = now() - GetCurrentStatementStartTimestamp();
  return std::max<core::Microseconds>(StatementTimeout * kMillisecond - kMargin - spent, 0);
}

core::Microseconds longest_slice() {
  int limit = transaction_timeout();
  return limit <= 0 ? kLongestSlice : std::min(kLongestSlice, limit * kMillisecond / 2);
}

} // namespace jobq::pg
