// One field of a cron expression: a list of numbers, ranges and steps, or of days that depend on
// the month. README has the language.
#pragma once

#include <string_view>

#include "core/cron.hpp"

namespace jobq::core {

enum class Field { second, minute, hour, day, month, weekday };

// Puts into the cron what the field says: a text without blanks, not empty. Throws a Mistake.
void read_field(Field field, std::string_view text, Cron& cron);

} // namespace jobq::core
