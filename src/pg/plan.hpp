// A plan that is made once a session, generic, kept, and run with index walks only.
#pragma once

#include <cstdint>
#include <span>

#include "pg/value.hpp"

namespace jobq::pg {

inline constexpr std::size_t kMostParameters = 16;

struct Outcome {
  SPITupleTable* table;
  std::uint64_t count;
};

// The values' types are the plan's.
SPIPlanPtr make_plan(const char* sql, std::span<const Value> values);

// With a new snapshot (in READ COMMITTED). `most` stops it after so many rows; 0 is no limit.
Outcome run_plan(SPIPlanPtr plan, std::span<const Value> values, std::uint64_t most);

} // namespace jobq::pg
