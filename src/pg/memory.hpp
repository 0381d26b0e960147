// Memory for one turn of a loop: what the turn allocates goes when the turn ends.
#pragma once

#include "pg/postgres.hpp"

namespace jobq::pg {

class TurnMemory {
 public:
  TurnMemory();
  ~TurnMemory();
  TurnMemory(const TurnMemory&) = delete;
  TurnMemory& operator=(const TurnMemory&) = delete;

 private:
  MemoryContext outer_;
  MemoryContext memory_;
};

} // namespace jobq::pg
