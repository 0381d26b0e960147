#include "command/sql_command.hpp"

#include <algorithm>

#include "pg/client_command.hpp"
#include "pg/error.hpp"
#include "pg/role.hpp"
#include "pg/statement.hpp"
#include "pg/text.hpp"
#include "command/permit.hpp"
#include "queue/bounds.hpp"

namespace jobq::command {

namespace {

constinit pg::Statement
    insert_row("INSERT INTO jobq.sql_command (job_id, due_at, timeout, role_oid, role_name,"
               " command) VALUES ($1, $2, $3, $4, $5, $6)");

constinit pg::Statement
    select_row("SELECT command, role_oid, role_name, timeout FROM jobq.sql_command"
               " WHERE job_id OPERATOR(pg_catalog.=) $1");

constinit pg::Statement roles_by_name(
    "UPDATE jobq.sql_command AS c SET role_oid = COALESCE((SELECT r.oid FROM pg_catalog.pg_roles"
    " AS r WHERE r.rolname OPERATOR(pg_catalog.=) c.role_name), 0::pg_catalog.oid)");

// In two steps, as one queue's new name may be another's old one.
constinit pg::Statement
    unname_queues("UPDATE jobq.queue SET name = pg_catalog.concat('sql/gone/', queue_id)"
                  " WHERE pg_catalog.starts_with(name, 'sql/')");

constinit pg::Statement name_queues(
    "UPDATE jobq.queue AS q SET name = pg_catalog.concat('sql/', m.role_oid)"
    " FROM (SELECT c.role_oid, pg_catalog.min(j.queue_id) AS queue_id FROM jobq.sql_command AS c"
    " JOIN jobq.job AS j ON j.job_id OPERATOR(pg_catalog.=) c.job_id"
    " WHERE c.role_oid OPERATOR(pg_catalog.<>) 0::pg_catalog.oid GROUP BY c.role_oid) AS m"
    " WHERE q.queue_id OPERATOR(pg_catalog.=) m.queue_id");

Oid role_named(std::string_view name) {
  std::optional<Oid> role;
  if (name.size() <= queue::kLongestName) role = pg::find_role(std::string(name));
  if (role) return *role;
  pg::raise({.sqlstate = pg::SqlState::undefined_object,
             .message =
                 "role \"" + std::string(pg::clip(name, queue::kLongestName)) + "\" does not exist",
             .hint = "Pass the name of a role that may log in."});
}

} // namespace

std::string_view check_command(std::string_view text) {
  if (text.size() > kLongestCommand)
    pg::raise({.sqlstate = pg::SqlState::name_too_long,
               .message = "command is too long",
               .detail = "It has " + std::to_string(text.size()) + " bytes; " +
                         std::to_string(kLongestCommand) + " are allowed.",
               .hint = "Put the work into a procedure, and CALL that."});
  pg::require_sql(std::string(text));
  return text;
}

core::Microseconds check_timeout(const core::Interval& timeout) {
  core::Microseconds length = queue::check_length(timeout, "timeout");
  if (length > 0) return length;
  pg::raise({.sqlstate = pg::SqlState::invalid_value,
             .message = "timeout must be longer than 0",
             .hint = "Pass a long one, such as '365 days', for a command that may take any time."});
}

void refuse_restricted() {
  if (!pg::is_restricted()) return;
  pg::raise(
      {.sqlstate = pg::SqlState::insufficient_privilege,
       .message = "cannot make or change schedules and SQL jobs in a security-restricted operation",
       .hint = "Call it from a session of the role that is to own what it makes."});
}

SqlCommand command_as(Oid caller, std::optional<std::string_view> run_as) {
  refuse_restricted();
  SqlCommand command = {.role = run_as ? role_named(*run_as) : caller};
  require_own(caller, command.role);
  command.role_name = pg::role_name(command.role).value_or("");
  require_permit(command.role, command.role_name);
  return command;
}

void require_own(Oid caller, Oid role) {
  if (role == caller || pg::is_superuser(caller)) return;
  pg::raise({.sqlstate = pg::SqlState::insufficient_privilege,
             .message = "only a superuser may have a command run as another role",
             .hint = "Make it as the role that it is to run as."});
}

queue::Enqueued enqueue_command(queue::Order order, const SqlCommand& command) {
  std::string queue = queue::sql_queue_of(command.role);
  order.queue = queue;
  order.task = kTask;
  order.payload = pg::empty_json_object();
  queue::Enqueued enqueued = queue::enqueue_order(order);
  if (enqueued.is_created)
    insert_row.run({pg::int8(enqueued.job_id),
                    pg::instant(std::max(order.now, order.run_at.value_or(order.now))),
                    pg::int8(command.timeout), pg::oid(command.role), pg::text(command.role_name),
                    pg::text(command.text)});
  return enqueued;
}

std::optional<SqlCommand> read_command(std::int64_t job_id) {
  pg::Rows rows = select_row.run({pg::int8(job_id)});
  if (rows.empty()) return std::nullopt;
  return SqlCommand{.text = std::string(rows.text(0, 0)),
                    .role = DatumGetObjectId(rows.at(0, 1).datum),
                    .role_name = std::string(rows.text(0, 2)),
                    .timeout = rows.int8(0, 3)};
}

void find_roles() {
  roles_by_name.run_freely({});
  unname_queues.run_freely({});
  name_queues.run_freely({});
}

} // namespace jobq::command
