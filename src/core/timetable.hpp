// What a schedule's text says: a cron expression of five fields, or six with seconds first; a word
// such as @daily; an interval such as "30 seconds"; or @reboot. README has the language.
#pragma once

#include <string_view>
#include <variant>

#include "core/cron.hpp"
#include "core/duration.hpp"
#include "core/mistake.hpp"

namespace jobq::core {

struct Timetable {
  enum class Kind {
    cron,     // at the local times that match
    interval, // again and again after so long, counted from the schedule's start
    reboot    // once after each start of the server
  };
  Kind kind = Kind::cron;
  Cron cron = {};
  Microseconds interval = 0; // at least a second
};

// Any bytes, of any length. What can never come about (February 30th) is a mistake as well.
std::variant<Timetable, Mistake> read_timetable(std::string_view text);

} // namespace jobq::core
