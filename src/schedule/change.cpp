#include "schedule/change.hpp"

#include <string>

#include "command/home.hpp"
#include "pg/clock.hpp"
#include "pg/error.hpp"
#include "pg/role.hpp"
#include "pg/sequence.hpp"
#include "queue/bounds.hpp"
#include "queue/notes.hpp"
#include "queue/queue.hpp"
#include "schedule/fire.hpp"
#include "schedule/runs.hpp"

namespace jobq::schedule {

namespace {

constexpr const char* kScheduleNumber = "schedule_number";
constexpr const char* kAdmin = "jobq_admin";

bool is_admin(Oid role) {
  std::optional<Oid> admin = pg::find_role(kAdmin);
  return admin && pg::has_rights_of(role, *admin);
}

// Some queues come to exist with their first job.
void check_queue(const Schedule& schedule) {
  if (!schedule.command && !queue::comes_by_itself(schedule.queue))
    queue::share_queue(schedule.queue);
}

// Of @reboot the server's last start is dealt with.
TimestampTz handled_by_now(const core::Rule& rule, TimestampTz now) {
  return is_by_reboot(rule) ? pg::server_start() : now;
}

// What a clock that was ahead has missed is still to come.
void begin_at(Schedule& schedule, const core::Rule& rule, TimestampTz now) {
  forget_missed_after(schedule, now);
  schedule.handled_until = handled_by_now(rule, now);
}

void require_some_run(const Schedule& schedule, const core::Rule& rule) {
  TimestampTz now = pg::now();
  bool is_any = is_by_reboot(rule) ? !schedule.ends_at || *schedule.ends_at > now
                                   : core::next_after(rule, now).has_value();
  if (is_any) return;
  pg::raise({.sqlstate = pg::SqlState::invalid_value,
             .message = "the schedule has no instant that is still to come",
             .hint = "Pass an ends_at that is later, or none; jobq.next_runs shows the instants."});
}

// From here on the manager goes by it.
void set_out(Schedule& schedule, const core::Rule& rule) {
  schedule.next_run_at = next_run_of(schedule, rule);
  if (schedule.next_run_at) queue::note_instant(queue::Chore::fire, *schedule.next_run_at);
}

bool is_same_time(const Schedule& one, const Schedule& other) {
  return one.expression == other.expression && one.timezone == other.timezone &&
         one.starts_at == other.starts_at && one.ends_at == other.ends_at;
}

[[noreturn]] void complain_of_owner(const Schedule& schedule) {
  pg::raise({.sqlstate = pg::SqlState::duplicate_object,
             .message = "schedule \"" + schedule.name + "\" belongs to another role",
             .hint = "Choose another name, or have its owner \"" + schedule.owner_name +
                     "\" or an administrator change it with jobq.alter_schedule."});
}

std::int64_t replace(Schedule& old, Schedule wanted) {
  if (old.owner != wanted.owner) complain_of_owner(old);
  wanted.schedule_id = old.schedule_id;
  wanted.created_at = old.created_at;
  wanted.is_paused = old.is_paused;
  change(old, wanted);
  return old.schedule_id;
}

bool try_to_insert(Schedule& wanted, const core::Rule& rule) {
  wanted.schedule_id = pg::next_number(kScheduleNumber);
  if (wanted.name.empty()) wanted.name = "schedule " + std::to_string(wanted.schedule_id);
  set_out(wanted, rule);
  return insert(wanted);
}

} // namespace

std::string_view name_of(const pg::Call& call) {
  constexpr pg::Parameter kName{0, "name"};
  return queue::check_name(call.text(kName), kName.name);
}

void require_rights(const Schedule& schedule, Oid caller) {
  command::refuse_restricted();
  if (pg::has_rights_of(caller, schedule.owner) || is_admin(caller)) return;
  pg::raise({.sqlstate = pg::SqlState::insufficient_privilege,
             .message = "must be owner of schedule \"" + schedule.name + "\"",
             .hint = "Its owner is \"" + schedule.owner_name +
                     "\"; members of jobq_admin may change it as well."});
}

Schedule named_by(const pg::Call& call) {
  Schedule schedule = require_schedule(name_of(call));
  require_rights(schedule, call.caller());
  return schedule;
}

// Each turn of the loop means that another transaction has removed the schedule of that name, or
// that somebody has the name that was made up.
std::int64_t make(Schedule wanted) {
  core::Rule rule = rule_of(wanted);
  wanted.handled_until = handled_by_now(rule, wanted.created_at);
  require_some_run(wanted, rule);
  command::settle();
  command::warn_if_away();
  const bool is_named = !wanted.name.empty();
  for (;;) {
    if (is_named)
      if (std::optional<Schedule> old = lock_schedule(wanted.name)) return replace(*old, wanted);
    if (!is_named) wanted.name.clear();
    if (!try_to_insert(wanted, rule)) continue;
    check_queue(wanted);
    return wanted.schedule_id;
  }
}

// Whoever had the row may have dealt with what came until a moment ago.
void change(Schedule& old, Schedule wanted) {
  check_queue(wanted);
  TimestampTz now = pg::now();
  core::Rule rule = rule_of(wanted);
  wanted.handled_until = old.handled_until;
  wanted.waiting = old.waiting;
  if (!is_same_time(old, wanted) || old.stopped) {
    settle_instants(old, now, "the schedule was changed");
    wanted.waiting.reset();
    begin_at(wanted, rule, now);
  }
  wanted.stopped.reset();
  set_out(wanted, rule);
  update(wanted);
}

void set_going(Schedule& schedule) {
  check_queue(schedule);
  core::Rule rule = rule_of(schedule);
  schedule.is_paused = false;
  schedule.stopped.reset();
  begin_at(schedule, rule, pg::now());
  set_out(schedule, rule);
  update(schedule);
}

} // namespace jobq::schedule
