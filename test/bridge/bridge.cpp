// A module that breaks in every way that the bridge must bear: server errors under C++ objects,
// C++ exceptions under the server, errors in subtransactions.
#include <array>
#include <new>
#include <stdexcept>
#include <string>

#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/memory.hpp"
#include "pg/statement.hpp"
#include "pg/transaction.hpp"

extern "C" {
#pragma GCC visibility push(default)
PG_MODULE_MAGIC;
#pragma GCC visibility pop
}

namespace jobq {
namespace {

int alive = 0;

// Counts how many of its kind exist; owns memory that only its destructor gives back.
class Witness {
 public:
  Witness() : bytes_(1 << 16, 'x') { ++alive; }
  ~Witness() { --alive; }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

 private:
  std::string bytes_;
};

void raise_whole() {
  ereport(ERROR, (errcode(ERRCODE_CARDINALITY_VIOLATION), errmsg("message of the server"),
                  errdetail("detail of the server"), errhint("hint of the server")));
}

void raise_at(int witnesses) {
  if (witnesses > 10) raise_whole();
}

void divide_by_zero() { DirectFunctionCall2(int4div, Int32GetDatum(1), Int32GetDatum(0)); }

int deeper(int depth) {
  const Witness witness;
  if (depth > 0) return deeper(depth - 1) + alive;
  pg::guarded<raise_at>(alive);
  return alive;
}

Datum raise_deep(FunctionCallInfo) { return Int32GetDatum(deeper(10)); }

Datum raise_own(FunctionCallInfo) {
  const std::array<Witness, 2> witnesses;
  pg::raise({.sqlstate = pg::SqlState::undefined_object,
             .message = "message with 100 % of its signs: %s %n",
             .detail = "detail of a room",
             .hint = "hint of a room"});
}

Datum throw_standard(FunctionCallInfo) {
  const Witness witness;
  throw std::runtime_error("exception of C++");
}

Datum throw_long(FunctionCallInfo) {
  const Witness witness;
  throw std::runtime_error(std::string(10'000, 'y'));
}

Datum throw_memory(FunctionCallInfo) {
  const Witness witness;
  throw std::bad_alloc();
}

Datum throw_number(FunctionCallInfo) {
  const Witness witness;
  throw 42;
}

// An error of a turn's memory must outlive it.
Datum raise_in_turn(FunctionCallInfo) {
  const Witness witness;
  const pg::TurnMemory memory;
  pg::guarded<raise_whole>();
  return 0;
}

// Catches, rolls back, goes on: the result is the SQLSTATE that was caught and what was kept.
Datum recover(FunctionCallInfo) {
  MemoryContext before = CurrentMemoryContext;
  const Witness witness;
  std::optional<pg::Error> error = pg::in_subtransaction([] {
    const Witness inner;
    pg::guarded<divide_by_zero>();
  });
  std::optional<pg::Error> none = pg::in_subtransaction([] { const Witness inner; });
  bool is_right = error && error->sqlstate() == ERRCODE_DIVISION_BY_ZERO && !none && alive == 1 &&
                  CurrentMemoryContext == before;
  return BoolGetDatum(is_right);
}

Datum rethrow_through_subtransaction(FunctionCallInfo) {
  const Witness witness;
  pg::in_subtransaction([] {
    const Witness inner;
    throw std::runtime_error("exception under a subtransaction");
  });
  return 0;
}

Datum count_alive(FunctionCallInfo) { return Int32GetDatum(alive); }

} // namespace

JOBQ_DOOR(bridge_raise_deep) { return pg::bridge(fcinfo, raise_deep); }
JOBQ_DOOR(bridge_raise_own) { return pg::bridge(fcinfo, raise_own); }
JOBQ_DOOR(bridge_throw_standard) { return pg::bridge(fcinfo, throw_standard); }
JOBQ_DOOR(bridge_throw_long) { return pg::bridge(fcinfo, throw_long); }
JOBQ_DOOR(bridge_throw_memory) { return pg::bridge(fcinfo, throw_memory); }
JOBQ_DOOR(bridge_throw_number) { return pg::bridge(fcinfo, throw_number); }
JOBQ_DOOR(bridge_raise_in_turn) { return pg::bridge(fcinfo, raise_in_turn); }
JOBQ_DOOR(bridge_recover) { return pg::bridge(fcinfo, recover); }
JOBQ_DOOR(bridge_rethrow) { return pg::bridge(fcinfo, rethrow_through_subtransaction); }
JOBQ_DOOR(bridge_alive) { return pg::bridge(fcinfo, count_alive); }

} // namespace jobq
