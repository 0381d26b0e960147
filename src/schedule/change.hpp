// Schedules as they come to be, change and go on: who may do that, and what becomes of the
// instants.
#pragma once

#include "pg/call.hpp"
#include "schedule/schedule.hpp"

namespace jobq::schedule {

// The schedule that the call's first parameter names, locked; the caller is its owner, has the
// owner's rights, or is an administrator.
std::string_view name_of(const pg::Call& call);
Schedule named_by(const pg::Call& call);
void require_rights(const Schedule& schedule, Oid caller);

// Makes it, or changes the owner's one of that name; without a name it gets one. Returns its id.
std::int64_t make(Schedule wanted);

// The words of `wanted` in place of those of `old`. When its time is another one, or it had
// stopped, its instants begin anew; else it goes on from where it is.
void change(Schedule& old, Schedule wanted);

// It is active from now on.
void set_going(Schedule& schedule);

} // namespace jobq::schedule
