#include "command/home.hpp"

#include "pg/error.hpp"
#include "pg/session.hpp"
#include "pg/statement.hpp"

namespace jobq::command {

namespace {

constinit pg::Statement
    home_row("SELECT FROM jobq.home WHERE system_identifier OPERATOR(pg_catalog.=) $1"
             " AND database_oid OPERATOR(pg_catalog.=) $2");

constinit pg::Statement
    settle_here("INSERT INTO jobq.home (home_id, system_identifier, database_oid)"
                " VALUES (1, $1, $2) ON CONFLICT (home_id) DO UPDATE"
                " SET system_identifier = $1, database_oid = $2");

constinit pg::Statement any_schedule("SELECT FROM jobq.schedule LIMIT 1");
constinit pg::Statement any_command("SELECT FROM jobq.sql_command LIMIT 1");

bool is_anything_there() { return !any_schedule.run({}).empty() || !any_command.run({}).empty(); }

} // namespace

bool is_home() {
  return !home_row.run({pg::int8(pg::system_identifier()), pg::oid(pg::my_database())}).empty();
}

void settle() {
  if (!is_home() && !is_anything_there()) settle_anew();
}

void settle_anew() {
  settle_here.run({pg::int8(pg::system_identifier()), pg::oid(pg::my_database())});
}

void warn_if_away() {
  if (is_home()) return;
  pg::warn({.sqlstate = pg::SqlState::warning,
            .message = "the schedules and SQL jobs of this database rest",
            .detail = "They came here by a restored dump or a clone.",
            .hint = "SELECT jobq.adopt() lets them run here."});
}

} // namespace jobq::command
