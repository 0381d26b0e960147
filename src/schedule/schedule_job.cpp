// Schedules as their owners want them: made, changed, put to rest and woken, removed.
#include <string>

#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/role.hpp"
#include "pg/sequence.hpp"
#include "pg/text.hpp"
#include "queue/bounds.hpp"
#include "queue/notes.hpp"
#include "queue/queue.hpp"
#include "schedule/expression.hpp"
#include "schedule/fire.hpp"
#include "schedule/home.hpp"
#include "schedule/runs.hpp"

namespace jobq::schedule {

namespace {

constexpr const char* kScheduleNumber = "schedule_number";
constexpr const char* kAdmin = "jobq_admin";

// The same for making and changing: NULL leaves what is there, which at first is the default.
constexpr pg::Parameter kName{0, "name"};
constexpr pg::Parameter kSchedule{1, "schedule"};
constexpr pg::Parameter kTask{2, "task"};
constexpr pg::Parameter kPayload{3, "payload"};
constexpr pg::Parameter kQueue{4, "queue"};
constexpr pg::Parameter kTimezone{5, "timezone"};
constexpr pg::Parameter kOverlap{6, "overlap"};
constexpr pg::Parameter kCatchUp{7, "catch_up"};
constexpr pg::Parameter kStartsAt{8, "starts_at"};
constexpr pg::Parameter kEndsAt{9, "ends_at"};
constexpr pg::Parameter kJitter{10, "jitter"};
constexpr pg::Parameter kPriority{11, "priority"};
constexpr pg::Parameter kMaxAttempts{12, "max_attempts"};
constexpr pg::Parameter kMaxCrashes{13, "max_crashes"};
constexpr pg::Parameter kGroupKey{14, "group_key"};
constexpr pg::Parameter kHeaders{15, "headers"};

void refuse_restricted() {
  if (!pg::is_restricted()) return;
  pg::raise({.sqlstate = pg::SqlState::insufficient_privilege,
             .message = "cannot change a schedule within a security-restricted operation",
             .hint = "Call it from a session of the role that is to own the schedule."});
}

bool is_admin(Oid role) {
  std::optional<Oid> admin = pg::find_role(kAdmin);
  return admin && pg::has_rights_of(role, *admin);
}

// Its owner, who has the owner's rights, or an administrator.
void require_rights(const Schedule& schedule, Oid caller) {
  refuse_restricted();
  if (pg::has_rights_of(caller, schedule.owner) || is_admin(caller)) return;
  pg::raise({.sqlstate = pg::SqlState::insufficient_privilege,
             .message = "must be owner of schedule \"" + schedule.name + "\"",
             .hint = "Its owner is \"" + schedule.owner_name +
                     "\"; members of jobq_admin may change it as well."});
}

std::string_view name_of(const pg::Call& call) {
  return queue::check_name(call.text(kName), kName.name);
}

// For ever, in either direction, is without a bound.
std::optional<TimestampTz> bound_of(TimestampTz instant, TimestampTz none, const char* what) {
  if (instant == none) return std::nullopt;
  return queue::check_instant(instant, what);
}

void read_time(const pg::Call& call, Schedule& schedule) {
  if (auto text = call.text_or_null(kSchedule)) {
    read_expression(*text);
    schedule.expression = *text;
  }
  if (auto name = call.text_or_null(kTimezone)) schedule.timezone = check_timezone(*name);
  if (auto word = call.text_or_null(kOverlap)) schedule.overlap = read_overlap(*word);
  if (auto word = call.text_or_null(kCatchUp)) schedule.catch_up = read_catch_up(*word);
  if (auto instant = call.instant_or_null(kStartsAt))
    schedule.starts_at = bound_of(*instant, DT_NOBEGIN, kStartsAt.name);
  if (auto instant = call.instant_or_null(kEndsAt))
    schedule.ends_at = bound_of(*instant, DT_NOEND, kEndsAt.name);
  if (auto jitter = call.interval_or_null(kJitter))
    schedule.jitter = queue::check_length(*jitter, kJitter.name);
}

void read_limit(const pg::Call& call, pg::Parameter parameter, std::optional<std::int32_t>& limit) {
  if (auto given = call.int4_or_null(parameter)) limit = queue::check_limit(*given, parameter.name);
}

void read_job(const pg::Call& call, Schedule& schedule) {
  if (auto task = call.text_or_null(kTask)) schedule.task = queue::check_name(*task, kTask.name);
  if (!call.is_null(kPayload)) schedule.payload = call.value(kPayload, JSONBOID);
  if (auto queue = call.text_or_null(kQueue)) schedule.queue = queue::check_queue_name(*queue);
  if (auto priority = call.int4_or_null(kPriority))
    schedule.priority = queue::check_priority(*priority);
  read_limit(call, kMaxAttempts, schedule.max_attempts);
  read_limit(call, kMaxCrashes, schedule.max_crashes);
  if (auto group_key = call.text_or_null(kGroupKey)) {
    queue::check_group_key(*group_key);
    schedule.group_key = call.value(kGroupKey, TEXTOID);
  }
  if (!call.is_null(kHeaders)) schedule.headers = call.value(kHeaders, JSONBOID);
}

// The default queue comes to exist with its first job.
void check_queue(const Schedule& schedule) {
  if (schedule.queue != queue::kDefaultQueue) queue::share_queue(schedule.queue);
}

Schedule read_new(const pg::Call& call, TimestampTz now) {
  Schedule schedule;
  schedule.name = name_of(call);
  call.require(kSchedule);
  call.require(kTask);
  schedule.owner = call.caller();
  schedule.owner_name = pg::role_name(call.caller()).value_or("");
  schedule.timezone = kDefaultTimezone;
  schedule.payload = pg::empty_json_object();
  schedule.queue = queue::kDefaultQueue;
  schedule.priority = queue::kDefaultPriority;
  schedule.created_at = now;
  read_time(call, schedule);
  read_job(call, schedule);
  return schedule;
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

void warn_if_away() {
  if (is_home()) return;
  pg::warn({.sqlstate = pg::SqlState::warning,
            .message = "the schedules of this database rest",
            .detail = "They came here by a restored dump or a clone.",
            .hint = "SELECT jobq.adopt() lets them run here."});
}

bool is_same_time(const Schedule& one, const Schedule& other) {
  return one.expression == other.expression && one.timezone == other.timezone &&
         one.starts_at == other.starts_at && one.ends_at == other.ends_at;
}

// The words of `wanted` in place of those of `old`. When its time is another one, or it had
// stopped, its instants begin anew; else it goes on from where it is.
void change(Schedule& old, Schedule wanted) {
  check_queue(wanted);
  TimestampTz now =
      pg::now(); // whoever had the row may have dealt with what came until a moment ago
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

// Each turn of the loop means that another transaction has removed the schedule of that name.
Datum schedule_job(pg::Call& call) {
  refuse_restricted();
  TimestampTz now = pg::now();
  Schedule wanted = read_new(call, now);
  core::Rule rule = rule_of(wanted);
  wanted.handled_until = handled_by_now(rule, now);
  require_some_run(wanted, rule);
  settle();
  warn_if_away();
  for (;;) {
    if (std::optional<Schedule> old = lock_schedule(wanted.name))
      return call.returns(replace(*old, wanted));
    wanted.schedule_id = pg::next_number(kScheduleNumber);
    set_out(wanted, rule);
    if (!insert(wanted)) continue;
    check_queue(wanted);
    return call.returns(wanted.schedule_id);
  }
}

Schedule named_by(const pg::Call& call) {
  Schedule schedule = require_schedule(name_of(call));
  require_rights(schedule, call.caller());
  return schedule;
}

Datum alter_schedule(pg::Call& call) {
  Schedule old = named_by(call);
  Schedule wanted = old;
  read_time(call, wanted);
  read_job(call, wanted);
  change(old, wanted);
  return call.returns_nothing();
}

Datum unschedule(pg::Call& call) {
  std::optional<Schedule> schedule = lock_schedule(name_of(call));
  if (!schedule) return call.returns(false);
  require_rights(*schedule, call.caller());
  settle_instants(*schedule, pg::now(), "the schedule was removed");
  remove(*schedule);
  return call.returns(true);
}

Datum pause_schedule(pg::Call& call) {
  Schedule schedule = named_by(call);
  settle_instants(schedule, pg::now(), "the schedule was paused");
  schedule.is_paused = true;
  schedule.next_run_at.reset();
  update(schedule);
  return call.returns_nothing();
}

// A schedule whose owner is gone has a new one in whoever resumes it.
Datum resume_schedule(pg::Call& call) {
  Schedule schedule = named_by(call);
  if (!schedule.is_active()) {
    if (!pg::role_name(schedule.owner)) schedule.owner = call.caller();
    schedule.owner_name = pg::role_name(schedule.owner).value_or("");
    check_queue(schedule);
    core::Rule rule = rule_of(schedule);
    schedule.is_paused = false;
    schedule.stopped.reset();
    begin_at(schedule, rule, pg::now());
    set_out(schedule, rule);
    update(schedule);
  }
  warn_if_away();
  return call.returns_nothing();
}

Datum run_schedule(pg::Call& call) { return call.returns(fire_now(named_by(call), pg::now())); }

} // namespace

JOBQ_WRITING(jobq_schedule_job, schedule_job)
JOBQ_WRITING(jobq_alter_schedule, alter_schedule)
JOBQ_WRITING(jobq_unschedule, unschedule)
JOBQ_WRITING(jobq_pause_schedule, pause_schedule)
JOBQ_WRITING(jobq_resume_schedule, resume_schedule)
JOBQ_WRITING(jobq_run_schedule, run_schedule)

} // namespace jobq::schedule
