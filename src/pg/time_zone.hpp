// Time zones, by the rules that the server has.
#pragma once

#include <optional>
#include <string>

#include "core/zone.hpp"

namespace jobq::pg {

// The name of a zone as the server spells it, given in any case; nothing if it has no such zone, or
// if the name is a POSIX string (CST6, GMT+24), which the server would take as well.
std::optional<std::string> spelling_of_time_zone(const std::string& name);

// The rules of a zone by its name; nothing if the server has none.
std::optional<core::Zone> find_time_zone(const std::string& name);

} // namespace jobq::pg
