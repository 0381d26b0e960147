// Whether SQL jobs of a role may run in this database: what a client that connects as it would
// need. Asked when a job is made, and again before a process is started that runs some.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pg/postgres.hpp"

namespace jobq::command {

struct Refusal {
  std::string reason;
  std::string hint;
};

// `name` is what the role was called, for the case that it is gone.
std::optional<Refusal> refusal_of(Oid role, std::string_view name);

// Raises 42501 with the reason if it is refused.
void require_permit(Oid role, std::string_view name);

// Why one more session of the role would not be let in now, but may be later: its connection limit
// is reached, or the database's.
std::optional<std::string> why_full(Oid role);

// Another text for another state of what a session takes from its role when it connects: attributes
// and settings, for all databases and this one. Who runs on with an older one runs by old rules.
std::string face_of(Oid role);

} // namespace jobq::command
