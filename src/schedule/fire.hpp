// Firing: what is due is enqueued, in the transaction that moves the schedule on. Any number of
// processes may fire at once: each schedule is locked by one of them, and the key of its runs
// stands behind that.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/due.hpp"
#include "schedule/schedule.hpp"

namespace jobq::schedule {

// When things happen: what is due by now, of which what came before `undisturbed_since` is late;
// the server started at `started_at`, which is the instant of @reboot.
struct Clock {
  TimestampTz now = 0;
  TimestampTz undisturbed_since = 0;
  TimestampTz started_at = 0;
};
Clock read_clock();

struct Fired {
  std::int64_t schedules = 0;
  bool is_home = true;      // false: they rest
  bool is_any_left = false; // due, or waiting for a job's end: to be looked at again soon
  bool is_last = true;      // nothing more was due
  std::optional<TimestampTz> next = std::nullopt;   // to be looked at then
  std::optional<TimestampTz> lowest = std::nullopt; // the first next_run_at that can be seen
};

// Who fires page after page goes by this: what waits for a job's end and has been looked at, until
// that is cleared; and whose locks somebody had, each with the instant (of the monotonic clock) of
// its next try. Each try may take a lock's timeout, so they come after all others, one a page.
struct Passed {
  struct Locked {
    std::int64_t schedule_id = 0;
    core::Microseconds try_at = 0;
  };
  std::vector<std::int64_t> waiting = {};
  std::vector<Locked> locked = {};
};

// A page of what is due, in the caller's transaction. A schedule that cannot fire stops with its
// reason, and holds up no other. Below `from` there is nothing to see: what is gone stays in the
// index as long as an old snapshot pins it, and need not be walked over.
Fired fire_page(const Clock& clock, TimestampTz from, Passed& passed);

// Looks at a page of schedules, those after this id, whether they stand as their words, the clock
// and the server's time zones say; returns the last id, nothing after the last page.
std::optional<std::int64_t> check_page(const Clock& clock, std::int64_t after);

// Enqueues the schedule's job at once; raises 55000 if overlap is not allowed and one is live.
std::int64_t fire_now(const Schedule& schedule, TimestampTz now);

// The schedule is about to change or to go: its instants up to now that nobody dealt with are
// missed for that reason, and none waits.
void settle_instants(Schedule& schedule, TimestampTz now, std::string_view reason);

} // namespace jobq::schedule
