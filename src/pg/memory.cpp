#include "pg/memory.hpp"

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

MemoryContext make_memory() {
  return AllocSetContextCreate(CurrentMemoryContext, "jobq turn", ALLOCSET_DEFAULT_SIZES);
}

} // namespace

TurnMemory::TurnMemory() : outer_(CurrentMemoryContext), memory_(guarded<make_memory>()) {
  MemoryContextSwitchTo(memory_);
}

TurnMemory::~TurnMemory() {
  MemoryContextSwitchTo(outer_);
  MemoryContextDelete(memory_);
}

} // namespace jobq::pg
