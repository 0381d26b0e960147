// An interval: numbers with units, and as the server writes one: "1 day 02:00:00". Months and years
// have no fixed length and are refused.
#pragma once

#include <string_view>

#include "core/duration.hpp"

namespace jobq::core {

// Whether it is meant as an interval rather than as a cron expression; it may be a mistaken one.
bool is_interval(std::string_view text);

// At least a second. Throws a Mistake.
Microseconds read_interval(std::string_view text);

} // namespace jobq::core
