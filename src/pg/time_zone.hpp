// Time zones, by the rules that the server has.
#pragma once

#include <optional>
#include <string>

#include "core/zone.hpp"

namespace jobq::pg {

// The rules of the zone of that name, in any case; nothing if the server has none. It also takes
// POSIX strings ("EST5EDT,M3.2.0"): whether a name is one is for the caller to know.
std::optional<core::Zone> find_time_zone(const std::string& name);

} // namespace jobq::pg
