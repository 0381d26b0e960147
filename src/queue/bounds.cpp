#include "queue/bounds.hpp"

#include <string>

#include "core/lane.hpp"
#include "pg/clock.hpp"
#include "pg/error.hpp"
#include "pg/text.hpp"

namespace jobq::queue {

namespace {

using pg::SqlState;

constexpr std::string_view kSqlPrefix = "sql/";
constexpr std::string_view kReservedKeyPrefix = "schedule/";

void check_size(std::string_view text, const char* what, std::size_t most) {
  if (text.size() <= most) return;
  pg::raise({.sqlstate = SqlState::name_too_long,
             .message = std::string(what) + " is too long",
             .detail = "It has " + std::to_string(text.size()) + " bytes; " + std::to_string(most) +
                       " are allowed.",
             .hint = "Shorten it, or pass a hash of it."});
}

void check_not_empty(std::string_view text, const char* what) {
  if (!text.empty()) return;
  pg::raise({.sqlstate = SqlState::invalid_value,
             .message = std::string(what) + " must not be empty",
             .hint = "Give it at least one character."});
}

std::int32_t check_between(std::int32_t number, const char* what, std::int32_t least,
                           std::int32_t most) {
  if (number >= least && number <= most) return number;
  std::string range = std::to_string(least) + " to " + std::to_string(most);
  pg::raise({.sqlstate = SqlState::invalid_value,
             .message = std::string(what) + " " + std::to_string(number) + " is out of range",
             .hint = "Pass a number from " + range + "."});
}

} // namespace

std::string_view check_name(std::string_view name, const char* what) {
  check_not_empty(name, what);
  check_size(name, what, kLongestName);
  return name;
}

std::string_view check_queue_name(std::string_view name) {
  check_name(name, "queue");
  if (is_sql_queue(name))
    pg::raise({.sqlstate = SqlState::invalid_value,
               .message = "queue name \"" + std::string(name) + "\" is reserved",
               .hint = "Choose a name that does not begin with \"sql/\"."});
  return name;
}

std::string sql_queue_of(std::uint32_t role) {
  return std::string(kSqlPrefix).append(std::to_string(role));
}

bool is_sql_queue(std::string_view name) { return name.starts_with(kSqlPrefix); }

bool comes_by_itself(std::string_view name) { return name == kDefaultQueue || is_sql_queue(name); }

std::string_view check_job_key(std::string_view key) {
  check_not_empty(key, "job_key");
  check_size(key, "job_key", kLongestKey);
  return key;
}

std::string_view check_free_job_key(std::string_view key) {
  check_job_key(key);
  if (key.starts_with(kReservedKeyPrefix))
    pg::raise({.sqlstate = SqlState::invalid_value,
               .message = "job_key \"" + std::string(pg::clip(key, 63)) + "\" is reserved",
               .hint = "Choose a key that does not begin with \"schedule/\"."});
  return key;
}

std::string job_key_of_schedule(std::string_view name) {
  return std::string(kReservedKeyPrefix).append(name);
}

std::string_view check_group_key(std::string_view key) {
  check_size(key, "group_key", kLongestKey);
  return key;
}

std::int32_t check_max_jobs(std::int32_t max_jobs, std::int32_t most) {
  return check_between(max_jobs, "max_jobs", 1, most);
}

std::int32_t check_priority(std::int32_t priority) {
  return check_between(priority, "priority", kFirstPriority, kLastPriority);
}

std::int32_t check_weight(std::int32_t weight) {
  return check_between(weight, "weight", 1, core::kMostWeight);
}

std::int32_t check_limit(std::int32_t limit, const char* what) {
  return check_between(limit, what, 1, std::numeric_limits<std::int32_t>::max());
}

core::Microseconds check_length(const core::Interval& interval, const char* what) {
  core::Length length = core::length_of(interval);
  switch (length.flaw) {
  case core::Flaw::none:
    break;
  case core::Flaw::negative:
    pg::raise({.sqlstate = SqlState::invalid_value,
               .message = std::string(what) + " must not be negative",
               .hint = "Pass a length of time whose fields are all zero or more."});
  case core::Flaw::months:
    pg::raise({.sqlstate = SqlState::invalid_value,
               .message = std::string(what) + " must not have months or years",
               .hint = "Months differ in length: pass days, such as '30 days'."});
  case core::Flaw::too_long:
    pg::raise({.sqlstate = SqlState::out_of_range,
               .message = std::string(what) + " is too long",
               .hint = "Pass a shorter length of time."});
  }
  return length.microseconds;
}

core::Microseconds check_lease(core::Microseconds length) {
  if (length >= core::kSecond && length <= core::kDay) return length;
  pg::raise({.sqlstate = SqlState::invalid_value,
             .message = "lease is out of range",
             .hint = "Pass a length from '1 s' to '24 h'; renew it for longer work."});
}

TimestampTz check_instant(TimestampTz instant, const char* what) {
  if (!TIMESTAMP_NOT_FINITE(instant)) return instant;
  pg::raise({.sqlstate = SqlState::invalid_value,
             .message = std::string(what) + " must be finite",
             .hint = "Pass an instant of the calendar, or leave it out."});
}

TimestampTz after(TimestampTz now, core::Microseconds length, const char* what) {
  TimestampTz instant = core::later(now, length, pg::kLastInstant);
  if (instant != core::kForever) return instant;
  pg::raise({.sqlstate = SqlState::out_of_range,
             .message = std::string(what) + " reaches past the end of the calendar",
             .hint = "Pass a shorter length of time."});
}

std::optional<TimestampTz> run_at_of(const pg::Call& call, pg::Parameter run_at,
                                     pg::Parameter delay, TimestampTz now) {
  std::optional<TimestampTz> instant = call.instant_or_null(run_at);
  std::optional<core::Interval> wait = call.interval_or_null(delay);
  if (instant && wait)
    pg::raise({.sqlstate = SqlState::invalid_value,
               .message = "run_at and delay are given together",
               .hint = "Pass one of them."});
  if (instant) return check_instant(*instant, run_at.name);
  if (!wait) return std::nullopt;
  return after(now, check_length(*wait, delay.name), delay.name);
}

} // namespace jobq::queue
