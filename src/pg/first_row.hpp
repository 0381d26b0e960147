// The first row of what a command returns, kept as a JSON object of limited size; the rest is let
// go. It is made while the command runs, in its rights.
#pragma once

#include "pg/postgres.hpp"

extern "C" {
#include "tcop/dest.h"
}

namespace jobq::pg {

struct FirstRow {
  DestReceiver receiver; // first: the server knows it by this one
  MemoryContext memory;  // where the row is kept
  TupleDesc columns;     // of the statement at hand
  std::size_t longest;   // bytes
  char* json;            // null: there was no row
  bool is_cut;           // it would have been longer
};

// Ready to be handed to the server as &row.receiver.
FirstRow empty_first_row(MemoryContext memory, std::size_t longest);

} // namespace jobq::pg
