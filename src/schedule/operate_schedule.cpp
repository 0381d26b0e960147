// Schedules put to rest and woken, run by hand, removed.
#include "command/home.hpp"
#include "command/permit.hpp"
#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/role.hpp"
#include "schedule/change.hpp"
#include "schedule/fire.hpp"

namespace jobq::schedule {

namespace {

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

// A schedule whose owner is gone has a new one in whoever resumes it. Its commands run as the role
// that they ran as: nobody's command comes to run with the rights of who resumes it.
Datum resume_schedule(pg::Call& call) {
  Schedule schedule = named_by(call);
  if (!schedule.is_active()) {
    if (!pg::role_name(schedule.owner)) schedule.owner = call.caller();
    schedule.owner_name = pg::role_name(schedule.owner).value_or("");
    if (schedule.command)
      command::require_permit(schedule.command->role, schedule.command->role_name);
    set_going(schedule);
  }
  command::warn_if_away();
  return call.returns_nothing();
}

Datum run_schedule(pg::Call& call) { return call.returns(fire_now(named_by(call), pg::now())); }

} // namespace

JOBQ_WRITING(jobq_unschedule, unschedule)
JOBQ_WRITING(jobq_pause_schedule, pause_schedule)
JOBQ_WRITING(jobq_resume_schedule, resume_schedule)
JOBQ_WRITING(jobq_run_schedule, run_schedule)

} // namespace jobq::schedule
