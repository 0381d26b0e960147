#include "schedule/expression.hpp"

#include <optional>

#include "pg/error.hpp"
#include "pg/text.hpp"
#include "pg/time_zone.hpp"

namespace jobq::schedule {

namespace {

constexpr std::size_t kLongestZone = 255; // bytes, as the server has it

[[noreturn]] void complain_of_zone(std::string_view name) {
  pg::raise({.sqlstate = pg::SqlState::invalid_value,
             .message = "time zone \"" + std::string(pg::clip(name, 63)) + "\" is unknown",
             .hint = "Pass a name of pg_timezone_names, such as 'Europe/Berlin' or 'UTC': "
                     "abbreviations, offsets and POSIX strings have no rules for daylight saving "
                     "that one could rely on."});
}

} // namespace

core::Timetable read_expression(std::string_view text) {
  if (text.size() > kLongestExpression)
    pg::raise({.sqlstate = pg::SqlState::name_too_long,
               .message = "schedule is too long",
               .detail = "It has " + std::to_string(text.size()) + " bytes; " +
                         std::to_string(kLongestExpression) + " are allowed.",
               .hint = "Write ranges and steps instead of lists, or make several schedules."});
  std::variant<core::Timetable, core::Mistake> read = core::read_timetable(text);
  if (auto* mistake = std::get_if<core::Mistake>(&read))
    pg::raise({.sqlstate = pg::SqlState::invalid_value,
               .message = mistake->message,
               .hint = mistake->hint});
  return std::get<core::Timetable>(read);
}

bool is_expression(std::string_view text) {
  return text.size() <= kLongestExpression &&
         std::holds_alternative<core::Timetable>(core::read_timetable(text));
}

std::string check_timezone(std::string_view name) {
  if (name.size() > kLongestZone) complain_of_zone(name);
  std::optional<std::string> spelling = pg::spelling_of_time_zone(std::string(name));
  if (!spelling) complain_of_zone(name);
  return *spelling;
}

core::Zone zone_of(const std::string& timezone) {
  std::optional<core::Zone> zone = pg::find_time_zone(timezone);
  if (!zone) complain_of_zone(timezone);
  return *zone;
}

} // namespace jobq::schedule
