#include "schedule/home.hpp"

#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/session.hpp"
#include "pg/statement.hpp"
#include "queue/notes.hpp"
#include "schedule/schedule.hpp"

namespace jobq::schedule {

namespace {

constinit pg::Statement
    home_row("SELECT FROM jobq.home WHERE system_identifier OPERATOR(pg_catalog.=) $1"
             " AND database_oid OPERATOR(pg_catalog.=) $2");

constinit pg::Statement
    settle_here("INSERT INTO jobq.home (home_id, system_identifier, database_oid)"
                " VALUES (1, $1, $2) ON CONFLICT (home_id) DO UPDATE"
                " SET system_identifier = $1, database_oid = $2");

// The numbers of roles mean nothing elsewhere, their names do: a role of the name that a schedule
// knows is its owner. If there is none, but the number is somebody's, it may be another role: the
// schedule is nobody's then.
constinit pg::Statement find_owners(
    "UPDATE jobq.schedule AS s SET owner_oid = COALESCE((SELECT r.oid FROM pg_catalog.pg_roles"
    " AS r WHERE r.rolname OPERATOR(pg_catalog.=) s.owner_name), 0::pg_catalog.oid)");

constinit pg::Statement
    find_owners_of_runs("UPDATE jobq.schedule_run AS r SET owner_oid = COALESCE((SELECT s.owner_oid"
                        " FROM jobq.schedule AS s WHERE s.schedule_id OPERATOR(pg_catalog.=)"
                        " r.schedule_id), 0::pg_catalog.oid)");

void settle_now() {
  settle_here.run({pg::int8(pg::system_identifier()), pg::oid(pg::my_database())});
}

Datum adopt(pg::Call& call) {
  if (is_home()) return call.returns_nothing();
  settle_now();
  find_owners.run_freely({});
  find_owners_of_runs.run_freely({});
  queue::note_instant(queue::Chore::fire, 0);
  return call.returns_nothing();
}

} // namespace

bool is_home() {
  return !home_row.run({pg::int8(pg::system_identifier()), pg::oid(pg::my_database())}).empty();
}

void settle() {
  if (!is_home() && !is_any_schedule()) settle_now();
}

JOBQ_WRITING(jobq_adopt, adopt)

} // namespace jobq::schedule
