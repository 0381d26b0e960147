// Schedules and SQL jobs that came by a restored dump or a clone are let run here. The numbers of
// roles mean nothing elsewhere, their names do.
#include "command/home.hpp"
#include "command/sql_command.hpp"
#include "pg/door.hpp"
#include "pg/statement.hpp"
#include "queue/notes.hpp"

namespace jobq::schedule {

namespace {

// A role of the name that a schedule knows is its owner. If there is none, but the number is
// somebody's, it may be another role: the schedule is nobody's then.
constinit pg::Statement find_owners(
    "UPDATE jobq.schedule AS s SET owner_oid = COALESCE((SELECT r.oid FROM pg_catalog.pg_roles"
    " AS r WHERE r.rolname OPERATOR(pg_catalog.=) s.owner_name), 0::pg_catalog.oid)");

constinit pg::Statement
    find_owners_of_runs("UPDATE jobq.schedule_run AS r SET owner_oid = COALESCE((SELECT s.owner_oid"
                        " FROM jobq.schedule AS s WHERE s.schedule_id OPERATOR(pg_catalog.=)"
                        " r.schedule_id), 0::pg_catalog.oid)");

constinit pg::Statement find_run_as(
    "UPDATE jobq.schedule AS s SET run_as_oid = COALESCE((SELECT r.oid FROM pg_catalog.pg_roles"
    " AS r WHERE r.rolname OPERATOR(pg_catalog.=) s.run_as_name), 0::pg_catalog.oid)"
    " WHERE s.command IS NOT NULL");

constinit pg::Statement name_queues("UPDATE jobq.schedule SET queue = pg_catalog.concat('sql/', "
                                    "run_as_oid) WHERE command IS NOT NULL");

Datum adopt(pg::Call& call) {
  if (command::is_home()) return call.returns_nothing();
  command::settle_anew();
  command::find_roles();
  find_owners.run_freely({});
  find_owners_of_runs.run_freely({});
  find_run_as.run_freely({});
  name_queues.run_freely({});
  queue::note_instant(queue::Chore::fire, 0);
  queue::note_instant(queue::Chore::execute, 0);
  return call.returns_nothing();
}

} // namespace

JOBQ_WRITING(jobq_adopt, adopt)

} // namespace jobq::schedule
