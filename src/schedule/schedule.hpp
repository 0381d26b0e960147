// Schedules as they stand in the table. A row is locked by whoever fires or changes it; what
// becomes of its instants is decided by the holder alone. Its row comes before its queue in the
// order of locks, and jobq.home before all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command/sql_command.hpp"
#include "core/due.hpp"
#include "pg/statement.hpp"

namespace jobq::schedule {

// What becomes of an instant while the last one's job is live.
enum class Overlap {
  skip,  // nothing
  queue, // its job is made when that one has ended; one instant at most waits for that
  allow  // its job is made
};

struct Schedule {
  std::int64_t schedule_id = 0;
  std::string name;
  Oid owner = InvalidOid;
  std::string owner_name;

  std::string expression;
  std::string timezone;
  Overlap overlap = Overlap::skip;
  core::CatchUp catch_up = core::CatchUp::once;
  std::optional<TimestampTz> starts_at;
  std::optional<TimestampTz> ends_at;
  core::Microseconds jitter = 0;

  std::string task;
  pg::Value payload;
  std::string queue;
  std::int32_t priority = 0;
  std::optional<std::int32_t> max_attempts;
  std::optional<std::int32_t> max_crashes;
  pg::Value group_key = pg::null(TEXTOID);
  pg::Value headers = pg::null(JSONBOID);

  std::optional<command::SqlCommand> command; // of one that makes SQL jobs

  bool is_paused = false;
  std::optional<std::string> stopped; // why
  TimestampTz created_at = 0;
  TimestampTz handled_until = 0;
  std::optional<TimestampTz> next_run_at;
  std::optional<TimestampTz> waiting; // an instant, under Overlap::queue

  bool is_active() const { return !is_paused && !stopped; }
};

// Raise 22023 for a word that is none of these.
Overlap read_overlap(std::string_view word);
core::CatchUp read_catch_up(std::string_view word);

// When it is due, by its own words; raises what is wrong with them.
core::Rule rule_of(const Schedule& schedule);

// Of @reboot: it is due by the server's starts, not by an instant.
bool is_by_reboot(const core::Rule& rule);

// Whether the instant lies between the schedule's bounds.
bool is_within_bounds(const Schedule& schedule, TimestampTz instant);

// The first instant that is not dealt with, if it is active and has one.
std::optional<TimestampTz> next_run_of(const Schedule& schedule, const core::Rule& rule);

// Locked until the transaction's end; another transaction's change is waited for.
std::optional<Schedule> lock_schedule(std::string_view name);
// Raises 42704 if there is none.
Schedule require_schedule(std::string_view name);

// Those that a manager is to fire, locked; what others have locked is left out, and so are
// `passed`. In order of their instants, from one on, or of their ids.
std::vector<Schedule> lock_due(TimestampTz from, TimestampTz now,
                               const std::vector<std::int64_t>& passed);
std::vector<Schedule> lock_waiting(const std::vector<std::int64_t>& passed);
std::optional<Schedule> lock_if_free(std::int64_t schedule_id);

// A page of all, in order of their ids, as they stand now.
std::vector<Schedule> read_after(std::int64_t schedule_id);

// The earliest next_run_at from an instant on; nothing if there is none.
std::optional<TimestampTz> earliest_run(TimestampTz from);

bool is_any_schedule();

// False: there is one of that name.
bool insert(const Schedule& schedule);
void update(const Schedule& schedule);
// What has come about alone: handled_until, next_run_at, waiting, stopped, the owner's name.
void advance(const Schedule& schedule);
void remove(const Schedule& schedule);

} // namespace jobq::schedule
