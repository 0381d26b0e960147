// What a schedule says of its time: the text of its timetable and the name of its zone, read by the
// rules of core/timetable and by the server's own list of zones.
#pragma once

#include <string>
#include <string_view>

#include "core/instants.hpp"

namespace jobq::schedule {

inline constexpr std::size_t kLongestExpression = 1000; // bytes
inline constexpr std::string_view kDefaultTimezone = "UTC";

// Raises 22023 with what is wrong and what to do about it.
core::Timetable read_expression(std::string_view text);
bool is_expression(std::string_view text);

// A name of pg_timezone_names in any case, as it is spelled there; raises 22023 for anything else:
// an abbreviation, a POSIX string, an offset.
std::string check_timezone(std::string_view name);

// The rules of a zone that was checked before; raises if the server knows it no more.
core::Zone zone_of(const std::string& timezone);

} // namespace jobq::schedule
