// What the manager of a database has to do, and when: kept in shared memory, written by whoever
// makes work. Truth is in the tables: a manager that comes anew reads them, so nothing need be
// kept while a database has none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/mark.hpp"

namespace jobq::queue {

// To be called once, by _PG_init while the server preloads its libraries.
void request_agenda();

enum class Chore { promote, rescue, prune, fire, execute };
inline constexpr int kChoreCount = 5;
inline constexpr int kSweptCount = 3; // the first ones, which are lines

// Producers of work, in this session's database. They raise nothing and may be called when a
// transaction ends; a manager that must hear of it at once has its latch set.

// A row with this instant can be seen in the chore's line.
void lower_mark(Chore chore, core::Microseconds instant);
// Where a look at the chore's line may begin, if its snapshot is taken after this call.
core::Place low_mark(Chore chore);
// There may be work for executors: one has left, or a SQL job is ready.
void want_executors(std::uint32_t database);
// COPY has put rows into the tables: a restore may be under way. By the monotonic clock.
void note_copy(core::Microseconds now);

// Those who LISTEN are to be told of the queue, or of all queues.
void call(std::uint32_t database, std::int64_t queue_id);
void call_all();

// The extension was made, changed or dropped. False: no manager is there to be told.
bool tell_of_change();

// The manager.

// From now on this process is the database's manager: all lines are to be read, all listeners to
// be told. It ends with the process.
void take_over(core::Microseconds now);

core::Microseconds mark_of(Chore chore);
void unread_marks();            // all lines are to be read again, from the beginning
core::Microseconds last_copy(); // 0: none since this process is the manager
// To be called before the reader's snapshot; returns the mark as it was until now.
core::Mark begin_reading(Chore chore);
void end_reading(Chore chore, core::Microseconds left, core::Place lowest);
// It came to nothing: what was to do still is.
void give_up_reading(Chore chore, const core::Mark& before);

struct Calls {
  bool is_all = false;
  std::vector<std::int64_t> queue_ids;

  bool empty() const { return !is_all && queue_ids.empty(); }
};
// Those that have come since the last time.
Calls take_calls();
void call_again(const Calls& calls);
bool has_calls();
// Until then (by the monotonic clock) calls wake nobody: the manager looks by itself.
void be_quiet_until(core::Microseconds instant);

// Whether the extension has changed since the last time.
bool take_change();
bool has_change();

// There is nothing to manage any more: the end of this process's time as manager, unless the
// extension has changed since the last take_change().
bool step_down();

void note_sweep(core::Microseconds now);

// What others may know of a database's manager.
struct ManagerReport {
  int process_id = 0;
  core::Microseconds since = 0;
  core::Microseconds swept_at = 0; // 0: not yet
};
std::optional<ManagerReport> report_on_manager(std::uint32_t database);

} // namespace jobq::queue
