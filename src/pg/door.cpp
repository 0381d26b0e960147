#include "pg/door.hpp"

#include <cstring>
#include <exception>
#include <new>

#include "pg/extension.hpp"
#include "pg/owner.hpp"
#include "pg/transaction.hpp"

namespace jobq::pg {

namespace {

// What is left of a thrown thing when all C++ scopes have ended: plain memory.
struct Remains {
  ErrorData* data = nullptr;
  bool out_of_memory = false;
  char message[256] = "";
};

void keep(Remains& remains, const char* message) {
  std::strncpy(remains.message, message, sizeof remains.message - 1);
}

[[noreturn]] void raise_again(const Remains& remains) {
  if (remains.data != nullptr) ReThrowError(remains.data);
  if (remains.out_of_memory)
    ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
  ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg_internal("%s", remains.message)));
  pg_unreachable();
}

template <typename Body>
Datum bridged(Body body) {
  Remains remains;
  try {
    const ErrorHome home(CurrentMemoryContext);
    return body();
  } catch (const Error& error) {
    remains.data = error.data();
  } catch (const std::bad_alloc&) {
    remains.out_of_memory = true;
  } catch (const std::exception& exception) {
    keep(remains, exception.what());
  } catch (...) {
    keep(remains, "unknown C++ exception");
  }
  raise_again(remains);
}

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
    require_preload();
    if (access == Access::writes) require_writes(function);
    const OwnerRights rights(function);
    require_fitting_version();
    if (access == Access::writes) note_write();

    Call call(fcinfo, CurrentMemoryContext);
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

Datum bridge(FunctionCallInfo fcinfo, Datum (*body)(FunctionCallInfo)) {
  return bridged([&] { return body(fcinfo); });
}

} // namespace jobq::pg
