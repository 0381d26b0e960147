#include "pg/door.hpp"

#include "pg/bridge.hpp"
#include "pg/extension.hpp"
#include "pg/owner.hpp"
#include "pg/transaction.hpp"

namespace jobq::pg {

namespace {

void connect() {
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
}

void finish() {
  if (SPI_finish() != SPI_OK_FINISH) elog(ERROR, "SPI_finish failed");
}

} // namespace

Datum enter(FunctionCallInfo fcinfo, Access access, Datum (*body)(Call&)) {
  return bridged([&] {
    Oid function = fcinfo->flinfo->fn_oid;
    if (access != Access::reports) require_preload();
    if (access == Access::writes) require_writes(function);
    const OwnerRights rights = OwnerRights::of_function(function);
    if (access != Access::reports) require_fitting_version();
    if (access == Access::writes) note_write();

    Call call(fcinfo, CurrentMemoryContext, rights.caller());
    guarded<connect>();
    Datum result = body(call);
    guarded<finish>();
    return result;
  });
}

void enter_init(void (*body)()) {
  bridged([&] {
    body();
    return Datum{0};
  });
}

void enter_hook(void (*body)(Oid), Oid object) {
  bridged([&] {
    body(object);
    return Datum{0};
  });
}

Datum bridge(FunctionCallInfo fcinfo, Datum (*body)(FunctionCallInfo)) {
  return bridged([&] { return body(fcinfo); });
}

} // namespace jobq::pg
