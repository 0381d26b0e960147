// When a schedule would be due, for whoever wants to know before making one.
#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/result_set.hpp"
#include "queue/bounds.hpp"
#include "schedule/expression.hpp"

namespace jobq::schedule {

namespace {

constexpr pg::Parameter kSchedule{0, "schedule"};
constexpr pg::Parameter kCount{1, "count"};
constexpr pg::Parameter kTimezone{2, "timezone"};
constexpr pg::Parameter kAfter{3, "after"};

constexpr std::int32_t kDefaultCount = 5;
constexpr std::int32_t kMostRuns = 1000;

std::int32_t count_of(const pg::Call& call) {
  std::int32_t count = call.int4_or_null(kCount).value_or(kDefaultCount);
  if (count >= 1 && count <= kMostRuns) return count;
  pg::raise({.sqlstate = pg::SqlState::invalid_value,
             .message = "count " + std::to_string(count) + " is out of range",
             .hint = "Pass a number from 1 to " + std::to_string(kMostRuns) + "."});
}

Datum next_runs(pg::Call& call) {
  core::Rule rule = {.timetable = read_expression(call.text(kSchedule))};
  std::int32_t count = count_of(call);
  rule.zone = zone_of(check_timezone(call.text_or_null(kTimezone).value_or(kDefaultTimezone)));
  TimestampTz after = pg::now();
  if (auto given = call.instant_or_null(kAfter)) after = queue::check_instant(*given, kAfter.name);
  rule.phase = after;
  rule.last = pg::kLastInstant;

  pg::ResultSet set(call);
  for (std::optional<TimestampTz> run = after; count > 0; --count) {
    run = core::next_after(rule, *run);
    if (!run) break;
    set.add({pg::instant(*run)});
  }
  return set.done();
}

} // namespace

JOBQ_READING(jobq_next_runs, next_runs)

} // namespace jobq::schedule
