// A cron expression: five fields, or six with seconds first.
#pragma once

#include <string_view>

#include "core/cron.hpp"

namespace jobq::core {

// Throws a Mistake.
Cron read_cron(std::string_view text);

} // namespace jobq::core
