// Schedules as their owners write them down: a time and a job, or a time and a command.
#include <string>

#include "command/sql_command.hpp"
#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/role.hpp"
#include "pg/text.hpp"
#include "queue/bounds.hpp"
#include "schedule/change.hpp"
#include "schedule/expression.hpp"

namespace jobq::schedule {

namespace {

constexpr pg::Parameter kName{0, "name"};
constexpr pg::Parameter kSchedule{1, "schedule"};

// The same for making and changing: NULL leaves what is there, which at first is the default. The
// time's parameters stand in one order, from a position on.
constexpr pg::Parameter kTask{2, "task"};
constexpr pg::Parameter kPayload{3, "payload"};
constexpr pg::Parameter kQueue{4, "queue"};
constexpr int kTimeOfJob = 5;
constexpr pg::Parameter kPriority{11, "priority"};
constexpr pg::Parameter kMaxAttempts{12, "max_attempts"};
constexpr pg::Parameter kMaxCrashes{13, "max_crashes"};
constexpr pg::Parameter kGroupKey{14, "group_key"};
constexpr pg::Parameter kHeaders{15, "headers"};

struct CommandParameters {
  pg::Parameter command;
  pg::Parameter timeout;
  pg::Parameter run_as;
};
constexpr CommandParameters kAltered = {
    .command = {16, "command"}, .timeout = {17, "timeout"}, .run_as = {18, "run_as"}};

// Of jobq.schedule.
constexpr CommandParameters kMade = {
    .command = {2, "command"}, .timeout = {9, "timeout"}, .run_as = {11, "run_as"}};
constexpr int kTimeOfCommand = 3;
constexpr pg::Parameter kAttemptsOfCommand{10, "max_attempts"};
constexpr std::int32_t kUsualAttempts = 1;

// For ever, in either direction, is without a bound.
std::optional<TimestampTz> bound_of(TimestampTz instant, TimestampTz none, const char* what) {
  if (instant == none) return std::nullopt;
  return queue::check_instant(instant, what);
}

void read_time(const pg::Call& call, int first, Schedule& schedule) {
  const pg::Parameter timezone{first, "timezone"};
  const pg::Parameter overlap{first + 1, "overlap"};
  const pg::Parameter catch_up{first + 2, "catch_up"};
  const pg::Parameter starts_at{first + 3, "starts_at"};
  const pg::Parameter ends_at{first + 4, "ends_at"};
  const pg::Parameter jitter{first + 5, "jitter"};
  if (auto name = call.text_or_null(timezone)) schedule.timezone = check_timezone(*name);
  if (auto word = call.text_or_null(overlap)) schedule.overlap = read_overlap(*word);
  if (auto word = call.text_or_null(catch_up)) schedule.catch_up = read_catch_up(*word);
  if (auto instant = call.instant_or_null(starts_at))
    schedule.starts_at = bound_of(*instant, DT_NOBEGIN, starts_at.name);
  if (auto instant = call.instant_or_null(ends_at))
    schedule.ends_at = bound_of(*instant, DT_NOEND, ends_at.name);
  if (auto length = call.interval_or_null(jitter))
    schedule.jitter = queue::check_length(*length, jitter.name);
}

void read_schedule(std::string_view text, Schedule& schedule) {
  read_expression(text);
  schedule.expression = text;
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

// A role's words are its own: nobody's come to run with the rights of who did not say them.
[[noreturn]] void complain_of_unsaid_command() {
  pg::raise({.sqlstate = pg::SqlState::invalid_value,
             .message = "run_as needs the command as well",
             .hint = "Pass the command that is to run as the other role."});
}

// A command is its role's own: others may say when it runs, but not what does.
void read_command(const pg::Call& call, const CommandParameters& parameters, Schedule& schedule) {
  if (call.is_null(parameters.command) && call.is_null(parameters.timeout) &&
      call.is_null(parameters.run_as))
    return;
  command::SqlCommand& command = *schedule.command;
  if (auto run_as = call.text_or_null(parameters.run_as)) {
    command::SqlCommand as = command::command_as(call.caller(), *run_as);
    if (as.role != command.role && call.is_null(parameters.command)) complain_of_unsaid_command();
    command.role = as.role;
    command.role_name = as.role_name;
  }
  command::require_own(call.caller(), command.role);
  if (auto text = call.text_or_null(parameters.command))
    command.text = command::check_command(*text);
  if (auto timeout = call.interval_or_null(parameters.timeout))
    command.timeout = command::check_timeout(*timeout);
  schedule.queue = queue::sql_queue_of(command.role);
}

[[noreturn]] void complain_of_kind(const Schedule& schedule, const char* parameter) {
  bool is_sql = schedule.command.has_value();
  pg::raise({.sqlstate = pg::SqlState::invalid_value,
             .message = "schedule \"" + schedule.name + "\" makes " +
                        (is_sql ? "SQL jobs" : "jobs for workers") + ", which have no " + parameter,
             .hint = std::string("Make it anew with ") +
                     (is_sql ? "jobq.schedule_job" : "jobq.schedule") + " under the same name."});
}

void check_kind(const pg::Call& call, const Schedule& schedule) {
  const pg::Parameter of_jobs[] = {kTask, kPayload, kQueue};
  const pg::Parameter of_commands[] = {kAltered.command, kAltered.timeout, kAltered.run_as};
  for (pg::Parameter parameter : schedule.command ? of_jobs : of_commands)
    if (!call.is_null(parameter)) complain_of_kind(schedule, parameter.name);
}

Schedule new_of(Oid owner) {
  Schedule schedule;
  schedule.owner = owner;
  schedule.owner_name = pg::role_name(owner).value_or("");
  schedule.timezone = kDefaultTimezone;
  schedule.payload = pg::empty_json_object();
  schedule.queue = queue::kDefaultQueue;
  schedule.priority = queue::kDefaultPriority;
  schedule.created_at = pg::now();
  return schedule;
}

Datum schedule_job(pg::Call& call) {
  command::refuse_restricted();
  Schedule wanted = new_of(call.caller());
  wanted.name = name_of(call);
  read_schedule(call.text(kSchedule), wanted);
  call.require(kTask);
  read_time(call, kTimeOfJob, wanted);
  read_job(call, wanted);
  return call.returns(make(wanted));
}

// As pg_cron has it, the name may be left out: then the first two are schedule and command. Whether
// it was is seen from whether the first is a schedule.
struct Words {
  std::string_view name;
  std::string_view schedule;
  std::string_view command;
};

Words read_words(const pg::Call& call) {
  std::string_view first = call.text(kName);
  std::string_view second = call.text(kSchedule);
  if (auto command = call.text_or_null(kMade.command))
    return {.name = queue::check_name(first, kName.name), .schedule = second, .command = *command};
  if (!is_expression(first)) call.require(kMade.command);
  return {.name = {}, .schedule = first, .command = second};
}

Datum schedule(pg::Call& call) {
  command::refuse_restricted();
  Words words = read_words(call);
  Schedule wanted = new_of(call.caller());
  wanted.name = words.name;
  read_schedule(words.schedule, wanted);
  read_time(call, kTimeOfCommand, wanted);
  wanted.max_attempts = kUsualAttempts;
  read_limit(call, kAttemptsOfCommand, wanted.max_attempts);
  command::check_command(words.command);
  wanted.command = command::command_as(call.caller(), call.text_or_null(kMade.run_as));
  wanted.command->text = words.command;
  if (auto timeout = call.interval_or_null(kMade.timeout))
    wanted.command->timeout = command::check_timeout(*timeout);
  wanted.task = command::kTask;
  wanted.queue = queue::sql_queue_of(wanted.command->role);
  return call.returns(make(wanted));
}

Datum alter_schedule(pg::Call& call) {
  Schedule old = named_by(call);
  check_kind(call, old);
  Schedule wanted = old;
  if (auto text = call.text_or_null(kSchedule)) read_schedule(*text, wanted);
  read_time(call, kTimeOfJob, wanted);
  read_job(call, wanted);
  if (wanted.command) read_command(call, kAltered, wanted);
  change(old, wanted);
  return call.returns_nothing();
}

} // namespace

JOBQ_WRITING(jobq_schedule_job, schedule_job)
JOBQ_WRITING(jobq_schedule, schedule)
JOBQ_WRITING(jobq_alter_schedule, alter_schedule)

} // namespace jobq::schedule
