// A background process's transactions: each one short, in memory of its own.
#pragma once

#include <optional>

#include "pg/error.hpp"

namespace jobq::pg {

// Begins, runs the body with SPI connected, commits. Nothing returned: it is committed; else it was
// rolled back, and the error is the server's word on why, in the caller's memory. `what` is shown
// in pg_stat_activity meanwhile.
class Turn {
 public:
  Turn() : memory_(CurrentMemoryContext) {}
  void begin(const char* what);
  void commit();
  void roll_back();

 private:
  MemoryContext memory_;
};

template <typename Body>
std::optional<Error> in_turn(const char* what, Body body) {
  const ErrorHome home(CurrentMemoryContext);
  Turn turn;
  try {
    turn.begin(what);
    body();
    turn.commit();
    return std::nullopt;
  } catch (const Error& error) {
    Error copy = error;
    turn.roll_back();
    return copy;
  } catch (...) {
    turn.roll_back();
    throw;
  }
}

} // namespace jobq::pg
