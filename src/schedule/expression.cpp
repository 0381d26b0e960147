#include "schedule/expression.hpp"

#include <set>

#include "pg/error.hpp"
#include "pg/statement.hpp"
#include "pg/text.hpp"
#include "pg/time_zone.hpp"

namespace jobq::schedule {

namespace {

// The list is made by reading every file of the server's time zones.
constinit pg::Statement spelling_of_zone(
    "SELECT name FROM pg_catalog.pg_timezone_names WHERE pg_catalog.lower(name COLLATE"
    " pg_catalog.\"C\") OPERATOR(pg_catalog.=) pg_catalog.lower($1 COLLATE pg_catalog.\"C\")");

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

std::string check_timezone(std::string_view name) {
  if (name.size() > kLongestZone) complain_of_zone(name);
  static auto* known = new std::set<std::string>; // as they are spelled
  std::string given(name);
  if (known->contains(given)) return given;
  pg::Rows rows = spelling_of_zone.run_freely({pg::text(name)});
  if (rows.empty()) complain_of_zone(name);
  return *known->insert(std::string(rows.text(0, 0))).first;
}

core::Zone zone_of(const std::string& timezone) {
  std::optional<core::Zone> zone = pg::find_time_zone(timezone);
  if (!zone) complain_of_zone(timezone);
  return *zone;
}

} // namespace jobq::schedule
