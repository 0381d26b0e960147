// SQL jobs from their makers' side: made, and cancelled.
#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/role.hpp"
#include "command/home.hpp"
#include "command/sql_command.hpp"
#include "queue/bounds.hpp"
#include "queue/cancel.hpp"

namespace jobq::command {

namespace {

constexpr pg::Parameter kCommand{0, "command"};
constexpr pg::Parameter kRunAt{1, "run_at"};
constexpr pg::Parameter kDelay{2, "delay"};
constexpr pg::Parameter kTimeout{3, "timeout"};
constexpr pg::Parameter kMaxAttempts{4, "max_attempts"};
constexpr pg::Parameter kRunAs{5, "run_as"};
constexpr std::int32_t kUsualAttempts = 1;

Datum enqueue_sql(pg::Call& call) {
  std::string_view text = check_command(call.text(kCommand));
  SqlCommand command = command_as(call.caller(), call.text_or_null(kRunAs));
  command.text = text;
  if (auto timeout = call.interval_or_null(kTimeout)) command.timeout = check_timeout(*timeout);
  TimestampTz now = pg::now();
  queue::Order order;
  order.now = now;
  order.run_at = queue::run_at_of(call, kRunAt, kDelay, now);
  order.max_attempts = queue::check_limit(call.int4_or_null(kMaxAttempts).value_or(kUsualAttempts),
                                          kMaxAttempts.name);
  settle();
  warn_if_away();
  return call.returns(enqueue_command(order, command).job_id);
}

[[noreturn]] void complain_of_role(std::int64_t job_id, const SqlCommand& command) {
  pg::raise({.sqlstate = pg::SqlState::insufficient_privilege,
             .message = "SQL job " + std::to_string(job_id) + " runs as another role",
             .hint = "Its role \"" + command.role_name +
                     "\" may cancel it, and administrators may with jobq.cancel."});
}

Datum cancel_sql(pg::Call& call) {
  refuse_restricted();
  std::int64_t job_id = call.int8({0, "job_id"});
  pg::Value reason = queue::read_reason(call, {1, "reason"});
  std::optional<SqlCommand> command = read_command(job_id);
  if (!command) return call.returns(false);
  if (!pg::has_rights_of(call.caller(), command->role)) complain_of_role(job_id, *command);
  return call.returns(queue::cancel_job(job_id, reason));
}

} // namespace

JOBQ_WRITING(jobq_enqueue_sql, enqueue_sql)
JOBQ_WRITING(jobq_cancel_sql, cancel_sql)

} // namespace jobq::command
