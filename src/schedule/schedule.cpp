#include "schedule/schedule.hpp"

#include <string>

#include "pg/clock.hpp"
#include "pg/error.hpp"
#include "pg/text.hpp"
#include "schedule/expression.hpp"

namespace jobq::schedule {

namespace {

#define JOBQ_SCHEDULE_COLUMNS                                                                      \
  "schedule_id, name, owner_oid, owner_name, expression, timezone, overlap, catch_up, starts_at,"  \
  " ends_at, jitter, task, payload, queue, priority::integer, max_attempts, max_crashes,"          \
  " group_key, headers, paused, stopped, created_at, handled_until, next_run_at, waiting,"         \
  " command, timeout, run_as_oid, run_as_name"

constinit pg::Statement by_name("SELECT " JOBQ_SCHEDULE_COLUMNS " FROM jobq.schedule"
                                " WHERE name OPERATOR(pg_catalog.=) $1 FOR UPDATE");

// A page of these is worked off in one transaction.
constinit pg::Statement due("SELECT " JOBQ_SCHEDULE_COLUMNS " FROM jobq.schedule"
                            " WHERE next_run_at OPERATOR(pg_catalog.>=) $3"
                            " AND next_run_at OPERATOR(pg_catalog.<=) $1"
                            " AND schedule_id OPERATOR(pg_catalog.<>) ALL ($2)"
                            " ORDER BY next_run_at, schedule_id LIMIT 50 FOR UPDATE SKIP LOCKED");

constinit pg::Statement waiting("SELECT " JOBQ_SCHEDULE_COLUMNS " FROM jobq.schedule"
                                " WHERE waiting IS NOT NULL"
                                " AND schedule_id OPERATOR(pg_catalog.<>) ALL ($1)"
                                " ORDER BY schedule_id LIMIT 50 FOR UPDATE SKIP LOCKED");

constinit pg::Statement
    by_id("SELECT " JOBQ_SCHEDULE_COLUMNS " FROM jobq.schedule"
          " WHERE schedule_id OPERATOR(pg_catalog.=) $1 FOR UPDATE SKIP LOCKED");

constinit pg::Statement after_id("SELECT " JOBQ_SCHEDULE_COLUMNS " FROM jobq.schedule"
                                 " WHERE schedule_id OPERATOR(pg_catalog.>) $1"
                                 " ORDER BY schedule_id LIMIT 100");

constinit pg::Statement
    earliest("SELECT next_run_at FROM jobq.schedule"
             " WHERE next_run_at OPERATOR(pg_catalog.>=) $1 ORDER BY next_run_at LIMIT 1");

constinit pg::Statement any("SELECT FROM jobq.schedule LIMIT 1");

constinit pg::Statement
    insert_row("INSERT INTO jobq.schedule (schedule_id, name, owner_oid, owner_name, expression,"
               " timezone, overlap, catch_up, starts_at, ends_at, jitter, task, payload, queue,"
               " priority, max_attempts, max_crashes, group_key, headers, paused, stopped,"
               " created_at, handled_until, next_run_at, waiting, command, timeout, run_as_oid,"
               " run_as_name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,"
               " $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)"
               " ON CONFLICT (name) DO NOTHING RETURNING schedule_id");

// The same values.
constinit pg::Statement
    update_row("UPDATE jobq.schedule SET name = $2, owner_oid = $3, owner_name = $4,"
               " expression = $5, timezone = $6, overlap = $7, catch_up = $8, starts_at = $9,"
               " ends_at = $10, jitter = $11, task = $12, payload = $13, queue = $14,"
               " priority = $15, max_attempts = $16, max_crashes = $17, group_key = $18,"
               " headers = $19, paused = $20, stopped = $21, created_at = $22,"
               " handled_until = $23, next_run_at = $24, waiting = $25, command = $26,"
               " timeout = $27, run_as_oid = $28, run_as_name = $29"
               " WHERE schedule_id OPERATOR(pg_catalog.=) $1");

constinit pg::Statement
    advance_row("UPDATE jobq.schedule SET owner_name = $2, stopped = $3, handled_until = $4,"
                " next_run_at = $5, waiting = $6, run_as_name = $7"
                " WHERE schedule_id OPERATOR(pg_catalog.=) $1");

constinit pg::Statement
    delete_row("DELETE FROM jobq.schedule WHERE schedule_id OPERATOR(pg_catalog.=) $1");

constexpr std::string_view kOverlaps[] = {"skip", "queue", "allow"};
constexpr std::string_view kCatchUps[] = {"none", "once", "all"};

// The word's place among the words.
template <typename Choice>
Choice choose(std::string_view word, const char* what, const std::string_view (&words)[3]) {
  for (std::size_t i = 0; i < 3; ++i)
    if (words[i] == word) return static_cast<Choice>(i);
  pg::raise(
      {.sqlstate = pg::SqlState::invalid_value,
       .message = std::string(what) + " \"" + std::string(pg::clip(word, 63)) + "\" is unknown",
       .hint = "Pass " + std::string(words[0]) + ", " + std::string(words[1]) + " or " +
               std::string(words[2]) + "."});
}

pg::Value word_of(Overlap overlap) { return pg::text(kOverlaps[static_cast<int>(overlap)]); }
pg::Value word_of(core::CatchUp catch_up) {
  return pg::text(kCatchUps[static_cast<int>(catch_up)]);
}

std::string string_at(const pg::Rows& rows, std::uint64_t row, int column) {
  return std::string(rows.text(row, column));
}

std::optional<std::string> string_or_null(const pg::Rows& rows, std::uint64_t row, int column) {
  if (rows.at(row, column).is_null) return std::nullopt;
  return string_at(rows, row, column);
}

std::optional<command::SqlCommand> command_at(const pg::Rows& rows, std::uint64_t row) {
  if (rows.at(row, 25).is_null) return std::nullopt;
  return command::SqlCommand{.text = string_at(rows, row, 25),
                             .role = DatumGetObjectId(rows.at(row, 27).datum),
                             .role_name = string_at(rows, row, 28),
                             .timeout = rows.int8(row, 26)};
}

// Values outlive the rows, in the current memory context.
Schedule schedule_at(const pg::Rows& rows, std::uint64_t row) {
  return {.schedule_id = rows.int8(row, 0),
          .name = string_at(rows, row, 1),
          .owner = DatumGetObjectId(rows.at(row, 2).datum),
          .owner_name = string_at(rows, row, 3),
          .expression = string_at(rows, row, 4),
          .timezone = string_at(rows, row, 5),
          .overlap = read_overlap(rows.text(row, 6)),
          .catch_up = read_catch_up(rows.text(row, 7)),
          .starts_at = rows.int8_or_null(row, 8),
          .ends_at = rows.int8_or_null(row, 9),
          .jitter = rows.int8(row, 10),
          .task = string_at(rows, row, 11),
          .payload = pg::copied(rows.at(row, 12)),
          .queue = string_at(rows, row, 13),
          .priority = rows.int4(row, 14),
          .max_attempts = rows.int4_or_null(row, 15),
          .max_crashes = rows.int4_or_null(row, 16),
          .group_key = pg::copied(rows.at(row, 17)),
          .headers = pg::copied(rows.at(row, 18)),
          .command = command_at(rows, row),
          .is_paused = rows.boolean(row, 19),
          .stopped = string_or_null(rows, row, 20),
          .created_at = rows.int8(row, 21),
          .handled_until = rows.int8(row, 22),
          .next_run_at = rows.int8_or_null(row, 23),
          .waiting = rows.int8_or_null(row, 24)};
}

std::vector<Schedule> all_of(const pg::Rows& rows) {
  std::vector<Schedule> schedules;
  for (std::uint64_t row = 0; row < rows.size(); ++row) schedules.push_back(schedule_at(rows, row));
  return schedules;
}

pg::Value stopped_of(const Schedule& schedule) {
  return schedule.stopped ? pg::text(*schedule.stopped) : pg::null(TEXTOID);
}

pg::Value role_name_of(const Schedule& schedule) {
  return schedule.command ? pg::text(schedule.command->role_name) : pg::null(TEXTOID);
}

// In the order of the columns.
std::vector<pg::Value> values_of(const Schedule& schedule) {
  const std::optional<command::SqlCommand>& command = schedule.command;
  return {pg::int8(schedule.schedule_id),
          pg::text(schedule.name),
          pg::oid(schedule.owner),
          pg::text(schedule.owner_name),
          pg::text(schedule.expression),
          pg::text(schedule.timezone),
          word_of(schedule.overlap),
          word_of(schedule.catch_up),
          pg::instant_or_null(schedule.starts_at),
          pg::instant_or_null(schedule.ends_at),
          pg::int8(schedule.jitter),
          pg::text(schedule.task),
          schedule.payload,
          pg::text(schedule.queue),
          pg::int4(schedule.priority),
          pg::int4_or_null(schedule.max_attempts),
          pg::int4_or_null(schedule.max_crashes),
          schedule.group_key,
          schedule.headers,
          pg::boolean(schedule.is_paused),
          stopped_of(schedule),
          pg::instant(schedule.created_at),
          pg::instant(schedule.handled_until),
          pg::instant_or_null(schedule.next_run_at),
          pg::instant_or_null(schedule.waiting),
          command ? pg::text(command->text) : pg::null(TEXTOID),
          command ? pg::int8(command->timeout) : pg::null(INT8OID),
          command ? pg::oid(command->role) : pg::null(OIDOID),
          role_name_of(schedule)};
}

} // namespace

Overlap read_overlap(std::string_view word) { return choose<Overlap>(word, "overlap", kOverlaps); }

core::CatchUp read_catch_up(std::string_view word) {
  return choose<core::CatchUp>(word, "catch_up", kCatchUps);
}

core::Rule rule_of(const Schedule& schedule) {
  return {.timetable = read_expression(schedule.expression),
          .zone = zone_of(schedule.timezone),
          .phase = schedule.starts_at.value_or(schedule.created_at),
          .starts_at = schedule.starts_at,
          .ends_at = schedule.ends_at,
          .last = pg::kLastInstant};
}

bool is_by_reboot(const core::Rule& rule) {
  return rule.timetable.kind == core::Timetable::Kind::reboot;
}

bool is_within_bounds(const Schedule& schedule, TimestampTz instant) {
  return (!schedule.starts_at || instant >= *schedule.starts_at) &&
         (!schedule.ends_at || instant <= *schedule.ends_at);
}

std::optional<TimestampTz> next_run_of(const Schedule& schedule, const core::Rule& rule) {
  if (!schedule.is_active()) return std::nullopt;
  return core::next_after(rule, schedule.handled_until);
}

std::optional<Schedule> lock_schedule(std::string_view name) {
  pg::Rows rows = by_name.run({pg::text(name)});
  if (rows.empty()) return std::nullopt;
  return schedule_at(rows, 0);
}

Schedule require_schedule(std::string_view name) {
  std::optional<Schedule> schedule = lock_schedule(name);
  if (schedule) return *std::move(schedule);
  pg::raise({.sqlstate = pg::SqlState::undefined_object,
             .message = "schedule \"" + std::string(pg::clip(name, 63)) + "\" does not exist",
             .hint = "Make it with jobq.schedule or jobq.schedule_job; jobq.schedules shows those "
                     "that are there."});
}

std::vector<Schedule> lock_due(TimestampTz from, TimestampTz now,
                               const std::vector<std::int64_t>& passed) {
  return all_of(due.run({pg::instant(now), pg::int8_array(passed), pg::instant(from)}));
}

std::vector<Schedule> lock_waiting(const std::vector<std::int64_t>& passed) {
  return all_of(waiting.run({pg::int8_array(passed)}));
}

std::optional<Schedule> lock_if_free(std::int64_t schedule_id) {
  pg::Rows rows = by_id.run({pg::int8(schedule_id)});
  return rows.empty() ? std::nullopt : std::optional(schedule_at(rows, 0));
}

std::vector<Schedule> read_after(std::int64_t schedule_id) {
  return all_of(after_id.run({pg::int8(schedule_id)}));
}

std::optional<TimestampTz> earliest_run(TimestampTz from) {
  pg::Rows rows = earliest.run({pg::instant(from)});
  return rows.empty() ? std::nullopt : rows.int8_or_null(0, 0);
}

bool is_any_schedule() { return !any.run({}).empty(); }

bool insert(const Schedule& schedule) { return !insert_row.run(values_of(schedule)).empty(); }

void update(const Schedule& schedule) { update_row.run(values_of(schedule)); }

void advance(const Schedule& schedule) {
  advance_row.run({pg::int8(schedule.schedule_id), pg::text(schedule.owner_name),
                   stopped_of(schedule), pg::instant(schedule.handled_until),
                   pg::instant_or_null(schedule.next_run_at), pg::instant_or_null(schedule.waiting),
                   role_name_of(schedule)});
}

void remove(const Schedule& schedule) { delete_row.run({pg::int8(schedule.schedule_id)}); }

} // namespace jobq::schedule
