#include "schedule/fire.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "command/home.hpp"
#include "command/permit.hpp"
#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/log.hpp"
#include "pg/random.hpp"
#include "pg/role.hpp"
#include "pg/transaction.hpp"
#include "pg/watch.hpp"
#include "queue/bounds.hpp"
#include "queue/enqueue.hpp"
#include "queue/notes.hpp"
#include "schedule/runs.hpp"

namespace jobq::schedule {

namespace {

// A step is to be short, whatever there is to catch up.
constexpr core::Microseconds kLongestStep = core::kSecond / 20;

constexpr core::Microseconds kBetweenTries = core::kSecond;

constexpr std::string_view kLate = "the server was away, or too busy to fire it in time";

// Spread by jitter, so that what is due at one instant need not start at once.
TimestampTz start_of(const Schedule& schedule, TimestampTz run_at) {
  auto delay =
      static_cast<core::Microseconds>(static_cast<double>(schedule.jitter) * pg::random_fraction());
  return std::min(core::later(run_at, delay, pg::kLastInstant), pg::kLastInstant);
}

queue::Enqueued enqueue_job(const Schedule& schedule, TimestampTz run_at, TimestampTz now) {
  std::string key = queue::job_key_of_schedule(schedule.name);
  queue::Order order = {.task = schedule.task,
                        .payload = schedule.payload,
                        .queue = schedule.queue,
                        .priority = schedule.priority,
                        .run_at = start_of(schedule, run_at),
                        .max_attempts = schedule.max_attempts,
                        .max_crashes = schedule.max_crashes,
                        .group_key = schedule.group_key,
                        .headers = schedule.headers,
                        .now = now};
  if (schedule.overlap != Overlap::allow) order.job_key = key;
  if (schedule.command) return command::enqueue_command(order, *schedule.command);
  return queue::enqueue_order(order);
}

std::string is_live(std::int64_t job_id) {
  return "job " + std::to_string(job_id) + " has not ended";
}

// The key of the schedule's live job says whether there is one.
void fire_instant(Schedule& schedule, TimestampTz run_at, TimestampTz now) {
  if (is_noted(schedule, run_at)) return; // before the clock fell back
  if (schedule.waiting)
    return note_skipped(schedule, run_at, "another instant waits for the last job's end", now);
  queue::Enqueued enqueued = enqueue_job(schedule, run_at, now);
  if (enqueued.is_created) return note_enqueued(schedule, run_at, enqueued.job_id, {}, now);
  if (schedule.overlap == Overlap::skip)
    return note_skipped(schedule, run_at, is_live(enqueued.job_id), now);
  note_waiting(schedule, run_at, now);
  schedule.waiting = run_at;
}

void fire_waiting(Schedule& schedule, TimestampTz now) {
  queue::Enqueued enqueued = enqueue_job(schedule, *schedule.waiting, now);
  if (!enqueued.is_created) return;
  end_waiting(schedule, enqueued.job_id, {}, now);
  schedule.waiting.reset();
}

// An instant that is not of the calendar was put there by hand.
bool is_ahead(const Schedule& schedule, TimestampTz now) {
  return schedule.handled_until > now || TIMESTAMP_NOT_FINITE(schedule.handled_until);
}

void note_step_back(Schedule& schedule, TimestampTz now) {
  forget_missed_after(schedule, now);
  schedule.handled_until = now;
}

// Whoever owns it may have another name by now.
void check_owner(Schedule& schedule) {
  std::optional<std::string> name = pg::role_name(schedule.owner);
  if (!name)
    pg::raise({.sqlstate = pg::SqlState::undefined_object,
               .message = "its owner, role \"" + schedule.owner_name + "\", does not exist",
               .hint = "jobq.resume_schedule makes an administrator its owner."});
  schedule.owner_name = *name;
}

// The same, and whether its commands may run at all.
void check_role(Schedule& schedule) {
  if (!schedule.command) return;
  command::SqlCommand& command = *schedule.command;
  command::require_permit(command.role, command.role_name);
  command.role_name = pg::role_name(command.role).value_or(command.role_name);
}

// The first of many may have its row, from before the clock fell back: they begin after it.
core::Due due_of(const Schedule& schedule, const core::Rule& rule, const core::Moment& moment,
                 core::CatchUp catch_up) {
  core::Due due = core::due_instants(rule, schedule.handled_until, moment, catch_up);
  while (due.long_missed && is_noted(schedule, due.long_missed->first)) {
    std::optional<TimestampTz> next = core::next_after(rule, due.long_missed->first);
    if (next && *next <= due.long_missed->last)
      due.long_missed->first = *next;
    else
      due.long_missed.reset();
  }
  return due;
}

void fire_due(Schedule& schedule, const core::Rule& rule, const Clock& clock) {
  core::Due due =
      due_of(schedule, rule, {.now = clock.now, .undisturbed_since = clock.undisturbed_since},
             schedule.catch_up);
  note_missed(schedule, due, kLate, clock.now);
  for (TimestampTz run_at : due.firing) fire_instant(schedule, run_at, clock.now);
  schedule.handled_until = due.handled_until;
  schedule.next_run_at = due.next;
}

// The server's start is the instant; the last one that was dealt with is kept as ever.
void fire_reboot(Schedule& schedule, const Clock& clock) {
  schedule.next_run_at.reset();
  if (schedule.handled_until == clock.started_at) return;
  if (is_within_bounds(schedule, clock.started_at))
    fire_instant(schedule, clock.started_at, clock.now);
  schedule.handled_until = clock.started_at;
}

void fire(Schedule& schedule, const Clock& clock) {
  if (!schedule.is_active()) {
    schedule.next_run_at.reset();
    return;
  }
  check_owner(schedule);
  check_role(schedule);
  core::Rule rule = rule_of(schedule);
  if (schedule.waiting) fire_waiting(schedule, clock.now);
  if (is_by_reboot(rule)) return fire_reboot(schedule, clock);
  if (is_ahead(schedule, clock.now)) note_step_back(schedule, clock.now);
  fire_due(schedule, rule, clock);
}

void note_unfired(const Schedule& schedule, TimestampTz now, std::string_view reason) {
  if (is_ahead(schedule, now)) return forget_missed_after(schedule, now);
  core::Due due = due_of(schedule, rule_of(schedule), {.now = now, .undisturbed_since = now},
                         core::CatchUp::none);
  for (TimestampTz run_at : due.firing) due.missed.push_back(run_at);
  note_missed(schedule, due, reason, now);
}

// False: the instants cannot be reckoned.
bool try_to_note_unfired(const Schedule& schedule, TimestampTz now, std::string_view reason) {
  std::optional<pg::Error> error =
      pg::in_subtransaction([&] { note_unfired(schedule, now, reason); });
  if (error && !pg::is_about_rows(*error)) throw *error;
  return !error;
}

// What it was before the attempt, and then that: it stops.
void stop(Schedule schedule, const pg::Error& error, const Clock& clock) {
  if (!try_to_note_unfired(schedule, clock.now, error.message()) && schedule.next_run_at &&
      !TIMESTAMP_NOT_FINITE(*schedule.next_run_at))
    note_missed(schedule, {.missed = {*schedule.next_run_at}}, error.message(), clock.now);
  if (schedule.waiting) end_waiting(schedule, std::nullopt, error.message(), clock.now);
  schedule.stopped = error.message();
  schedule.next_run_at.reset();
  schedule.waiting.reset();
  advance(schedule);
  pg::log_at_commit("jobq: schedule \"" + schedule.name + "\" stopped: " + error.message());
}

bool is_changed(const Schedule& now, const Schedule& before) {
  return now.handled_until != before.handled_until || now.next_run_at != before.next_run_at ||
         now.waiting != before.waiting || now.owner_name != before.owner_name ||
         (now.command && now.command->role_name != before.command->role_name);
}

// Only when it was wrong, or the clock fell back: whoever fires looks for the next one anyway.
bool is_sooner(const Schedule& now, const Schedule& before) {
  return now.next_run_at && (!before.next_run_at || *now.next_run_at < *before.next_run_at);
}

enum class Outcome { done, waits, locked };

// Locked is what it needs, by somebody else: it is due still.
Outcome try_to_fire(const Schedule& schedule, const Clock& clock) {
  Outcome outcome = Outcome::done;
  std::optional<pg::Error> error = pg::in_subtransaction([&] {
    Schedule moved = schedule;
    fire(moved, clock);
    if (is_changed(moved, schedule)) advance(moved);
    if (is_sooner(moved, schedule)) queue::note_instant(queue::Chore::fire, *moved.next_run_at);
    if (moved.waiting) outcome = Outcome::waits;
  });
  if (!error) return outcome;
  if (error->sqlstate() == ERRCODE_LOCK_NOT_AVAILABLE) return Outcome::locked;
  if (!pg::is_about_rows(*error)) throw *error;
  stop(schedule, *error, clock);
  return Outcome::done;
}

bool is_right_by(const Schedule& schedule, const core::Rule& rule, const Clock& clock) {
  if (is_by_reboot(rule))
    return !schedule.next_run_at && schedule.handled_until == clock.started_at;
  return !is_ahead(schedule, clock.now) && schedule.next_run_at == next_run_of(schedule, rule);
}

// Without a lock: nearly all always are. What cannot even be read is not.
bool is_right(const Schedule& schedule, const Clock& clock) {
  if (!schedule.is_active()) return !schedule.next_run_at;
  bool is_right = false;
  std::optional<pg::Error> error =
      pg::in_subtransaction([&] { is_right = is_right_by(schedule, rule_of(schedule), clock); });
  if (error && !pg::is_about_rows(*error)) throw *error;
  return is_right;
}

void add(std::vector<std::int64_t>& ids, std::int64_t id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

void fire_one(const Schedule& schedule, const Clock& clock, Passed& passed) {
  Outcome outcome = try_to_fire(schedule, clock);
  if (outcome == Outcome::locked)
    passed.locked.push_back(
        {.schedule_id = schedule.schedule_id, .try_at = pg::monotonic_now() + kBetweenTries});
  if (outcome == Outcome::waits) add(passed.waiting, schedule.schedule_id);
}

// Until the step has lasted long enough. True: there may be more of it.
bool fire_all(const std::vector<Schedule>& schedules, const Clock& clock, Passed& passed,
              Fired& fired) {
  const core::Microseconds start = pg::monotonic_now();
  for (const Schedule& schedule : schedules) {
    if (pg::monotonic_now() - start > kLongestStep) return true;
    fire_one(schedule, clock, passed);
    ++fired.schedules;
  }
  return !schedules.empty();
}

std::vector<std::int64_t> left_out(const Passed& passed, bool is_of_waiting) {
  std::vector<std::int64_t> ids;
  for (const Passed::Locked& locked : passed.locked) ids.push_back(locked.schedule_id);
  if (is_of_waiting) ids.insert(ids.end(), passed.waiting.begin(), passed.waiting.end());
  return ids;
}

bool has_locked_due(const Passed& passed) {
  return std::any_of(
      passed.locked.begin(), passed.locked.end(),
      [now = pg::monotonic_now()](const auto& locked) { return locked.try_at <= now; });
}

// One that was locked, if its time has come. Whose row itself is locked is due as any other.
void fire_one_locked(const Clock& clock, Passed& passed) {
  auto first = std::find_if(
      passed.locked.begin(), passed.locked.end(),
      [now = pg::monotonic_now()](const auto& locked) { return locked.try_at <= now; });
  if (first == passed.locked.end()) return;
  std::int64_t schedule_id = first->schedule_id;
  passed.locked.erase(first);
  if (auto schedule = lock_if_free(schedule_id)) fire_one(*schedule, clock, passed);
}

constexpr pg::Parameter kNow{0, "now"};
constexpr pg::Parameter kUndisturbedSince{1, "undisturbed_since"};

// What a manager does, at an instant of the caller's choice.
Datum fire_schedules(pg::Call& call) {
  Clock clock = read_clock();
  if (auto now = call.instant_or_null(kNow))
    clock = {.now = queue::check_instant(*now, kNow.name), .started_at = clock.started_at};
  if (auto since = call.instant_or_null(kUndisturbedSince))
    clock.undisturbed_since = queue::check_instant(*since, kUndisturbedSince.name);
  std::int64_t schedules = 0;
  Passed passed;
  for (bool is_last = false; !is_last;) {
    Fired fired = fire_page(clock, DT_NOBEGIN, passed);
    schedules += fired.schedules;
    is_last = fired.is_last;
  }
  std::optional<std::int64_t> last = std::numeric_limits<std::int64_t>::min();
  while (last) last = check_page(clock, *last);
  return call.returns(schedules);
}

} // namespace

// By the wall clock, of which the last disturbance is known by the monotonic one.
Clock read_clock() {
  core::Watch watch = pg::look_at_clocks();
  TimestampTz now = pg::now();
  return {.now = now,
          .undisturbed_since = now - (pg::monotonic_now() - watch.disturbed_at),
          .started_at = pg::server_start()};
}

Fired fire_page(const Clock& clock, TimestampTz from, Passed& passed) {
  Fired fired;
  if (!command::is_home()) {
    fired.is_home = !is_any_schedule();
    return fired;
  }
  bool is_more = fire_all(lock_waiting(left_out(passed, true)), clock, passed, fired);
  is_more |= fire_all(lock_due(from, clock.now, left_out(passed, false)), clock, passed, fired);
  if (!is_more) fire_one_locked(clock, passed);
  is_more |= has_locked_due(passed);
  fired.is_last = !is_more;
  fired.lowest = earliest_run(from);
  bool is_any_due = fired.lowest && *fired.lowest <= clock.now;
  fired.is_any_left = is_any_due || !passed.waiting.empty() || !passed.locked.empty();
  fired.next = is_more ? clock.now : earliest_run(clock.now + 1);
  return fired;
}

std::optional<std::int64_t> check_page(const Clock& clock, std::int64_t after) {
  if (!command::is_home()) return std::nullopt;
  std::vector<Schedule> schedules = read_after(after);
  for (const Schedule& schedule : schedules) {
    if (is_right(schedule, clock)) continue;
    if (auto locked = lock_if_free(schedule.schedule_id)) try_to_fire(*locked, clock);
  }
  if (schedules.empty()) return std::nullopt;
  return schedules.back().schedule_id;
}

std::int64_t fire_now(const Schedule& schedule, TimestampTz now) {
  Schedule at_once = schedule;
  at_once.jitter = 0;
  check_role(at_once);
  queue::Enqueued enqueued = enqueue_job(at_once, now, now);
  if (!enqueued.is_created)
    pg::raise({.sqlstate = pg::SqlState::not_ready,
               .message =
                   "schedule \"" + schedule.name + "\" has a live job: " + is_live(enqueued.job_id),
               .hint = "Wait for its end, cancel it, or let jobs overlap: "
                       "jobq.alter_schedule(..., overlap => 'allow')."});
  note_enqueued(schedule, now, enqueued.job_id, "run_schedule", now);
  return enqueued.job_id;
}

void settle_instants(Schedule& schedule, TimestampTz now, std::string_view reason) {
  if (schedule.waiting) end_waiting(schedule, std::nullopt, reason, now);
  schedule.waiting.reset();
  if (!schedule.is_active() || !schedule.next_run_at || !command::is_home()) return;
  try_to_note_unfired(schedule, now, reason); // what has no instants may go
}

JOBQ_WRITING(jobq_fire_schedules, fire_schedules)

} // namespace jobq::schedule
