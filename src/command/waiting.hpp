// SQL jobs that are ready, and since when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pg/postgres.hpp"

namespace jobq::command {

struct Due {
  TimestampTz at = 0;         // it was to run, or its last try failed, whichever came later
  std::string role_name = {}; // as it was when the job was made
};
Due due_of(std::int64_t job_id);

struct Waiting {
  std::int64_t count = 0;
  Oid role = InvalidOid; // of the one that is due for longest
  std::optional<TimestampTz> due_at = std::nullopt;
};
Waiting look_at_waiting();

} // namespace jobq::command
