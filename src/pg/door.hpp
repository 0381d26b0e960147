// The doors: the only places where the server calls C++. Each is one line, the macro below, that
// enters a room through the outbound bridge; a room's body may throw anything.
#pragma once

#include "pg/call.hpp"
#include "pg/compat.hpp"

namespace jobq::pg {

enum class Access {
  reads,
  writes,
  reports, // on whether the others can work: without the checks
};

// Checks what every function of the extension needs (preloaded library, fitting version; for
// writing ones, no recovery), connects to SPI, takes the owner's rights, runs the body, and puts
// everything back. Whatever the body throws is raised after its last C++ scope has ended.
Datum enter(FunctionCallInfo fcinfo, Access access, Datum (*body)(Call&));

// The bridge alone, for doors that need nothing of the above.
void enter_init(void (*body)());
void enter_hook(void (*body)(Oid), Oid object);
Datum bridge(FunctionCallInfo fcinfo, Datum (*body)(FunctionCallInfo));

} // namespace jobq::pg

#define JOBQ_DOOR(name)                                                                            \
  extern "C" {                                                                                     \
  _Pragma("GCC visibility push(default)") PG_FUNCTION_INFO_V1(name);                               \
  _Pragma("GCC visibility pop") JOBQ_EXPORT Datum name(PG_FUNCTION_ARGS);                          \
  }                                                                                                \
  Datum name(PG_FUNCTION_ARGS)

#define JOBQ_READING(name, body)                                                                   \
  JOBQ_DOOR(name) { return ::jobq::pg::enter(fcinfo, ::jobq::pg::Access::reads, body); }
#define JOBQ_WRITING(name, body)                                                                   \
  JOBQ_DOOR(name) { return ::jobq::pg::enter(fcinfo, ::jobq::pg::Access::writes, body); }
