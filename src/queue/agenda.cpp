#include "queue/agenda.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <type_traits>
#include <utility>

#include "pg/clock.hpp"
#include "pg/session.hpp"
#include "pg/shared_memory.hpp"
#include "pg/sleep.hpp"

namespace jobq::queue {

namespace {

constexpr std::size_t kMostCalls = 64;

// A database's manager. Its database is zero while the place is free; all is held by the lock, but
// that producers read marks without it.
struct Entry {
  std::uint32_t database = 0;
  std::int32_t process = 0;
  std::int32_t process_id = 0;
  bool has_change = false;
  bool is_calling_all = false;
  core::Microseconds quiet_until = 0; // calls wake nobody; by the monotonic clock
  std::uint32_t call_count = 0;
  std::array<std::int64_t, kMostCalls> calls = {};
  std::array<core::Mark, kChoreCount> marks = {};
  core::Microseconds copied_at = 0;
  core::Microseconds since = 0;
  core::Microseconds swept_at = 0;

  std::span<const std::int64_t> called() const { return {calls.data(), call_count}; }
  bool has_calls() const { return is_calling_all || call_count > 0; }
};

struct Agenda {
  pg::SharedLock lock;
  std::uint32_t count;
  Entry entries[1]; // one for each worker that the server may have
};
static_assert(std::is_trivially_copyable_v<Entry>);

Agenda* shared = nullptr;

std::size_t places() { return static_cast<std::size_t>(pg::most_workers()) + 1; }

void attach(void* memory) {
  shared = static_cast<Agenda*>(memory);
  shared->lock.init();
  shared->count = static_cast<std::uint32_t>(places());
}

constexpr pg::Segment kSegment = {.name = "jobq agenda",
                                  .size = [] { return sizeof(Agenda) + places() * sizeof(Entry); },
                                  .attach = attach};

std::span<Entry> entries() { return {shared->entries, shared->count}; }

Entry* find(std::uint32_t database) {
  for (Entry& entry : entries())
    if (entry.database == database) return &entry;
  return nullptr;
}

// Only while the lock is held.
void add_call(Entry& entry, std::int64_t queue_id) {
  std::span<const std::int64_t> called = entry.called();
  if (std::find(called.begin(), called.end(), queue_id) != called.end()) return;
  if (entry.call_count == kMostCalls)
    entry.is_calling_all = true;
  else
    entry.calls[entry.call_count++] = queue_id;
}

// Does something to the database's entry, if there is one, and wakes the manager if that says so.
template <typename Change>
bool change(std::uint32_t database, Change change) {
  int manager = -1;
  {
    const pg::Locked locked(shared->lock);
    Entry* entry = find(database);
    if (entry == nullptr) return false;
    if (change(*entry)) manager = entry->process;
  }
  if (manager >= 0) pg::wake_process(manager);
  return true;
}

Entry* mine = nullptr; // the manager's own

void leave() {
  const pg::Locked locked(shared->lock);
  if (mine != nullptr) *mine = {};
  mine = nullptr;
}

core::Mark& my_mark(Chore chore) { return mine->marks[static_cast<std::size_t>(chore)]; }

} // namespace

void request_agenda() { pg::request_segment(kSegment); }

// The look without the lock: whoever finds an instant that is early enough has read it before the
// manager began to read the line, and the row is among those that the manager will see; or another
// row had lowered the mark since, and ends the reading below this one. An instant that is the same
// is not enough: the low mark may be past this row, among those of that instant.
void lower_mark(Chore chore, core::Microseconds instant) {
  auto place = static_cast<std::size_t>(chore);
  pg::full_barrier();
  Entry* entry = find(pg::my_database());
  if (entry == nullptr) return;
  if (std::atomic_ref(entry->marks[place].instant).load() < instant) return;
  change(pg::my_database(), [=](Entry& entry) {
    core::Mark& mark = entry.marks[place];
    bool is_earlier = instant < mark.instant;
    mark.lower(instant);
    bool is_swept_later = chore == Chore::rescue || chore == Chore::prune;
    return is_earlier && !is_swept_later;
  });
}

void want_executors(std::uint32_t database) {
  change(database, [](Entry& entry) {
    entry.marks[static_cast<std::size_t>(Chore::execute)].lower(0);
    return true;
  });
}

core::Place low_mark(Chore chore) {
  const pg::Locked locked(shared->lock);
  const Entry* entry = find(pg::my_database());
  return entry == nullptr ? core::kBeginning : entry->marks[static_cast<std::size_t>(chore)].low;
}

void note_copy(core::Microseconds now) {
  change(pg::my_database(), [now](Entry& entry) {
    entry.marks.fill({});
    entry.copied_at = now;
    return true;
  });
}

void call(std::uint32_t database, std::int64_t queue_id) {
  change(database, [=](Entry& entry) {
    bool is_first = !entry.has_calls();
    add_call(entry, queue_id);
    return is_first && pg::monotonic_now() >= entry.quiet_until;
  });
}

void call_all() {
  change(pg::my_database(), [](Entry& entry) { return entry.is_calling_all = true; });
}

bool tell_of_change() {
  return change(pg::my_database(), [](Entry& entry) { return entry.has_change = true; });
}

void take_over(core::Microseconds now) {
  pg::at_exit(leave);
  const pg::Locked locked(shared->lock);
  mine = find(0);
  *mine = {.database = pg::my_database(),
           .process = pg::my_process(),
           .process_id = pg::my_process_id(),
           .is_calling_all = true,
           .since = now};
}

core::Microseconds mark_of(Chore chore) { return my_mark(chore).instant; }

core::Microseconds last_copy() { return mine->copied_at; }

void unread_marks() {
  const pg::Locked locked(shared->lock);
  mine->marks.fill({});
}

core::Mark begin_reading(Chore chore) {
  const pg::Locked locked(shared->lock);
  core::Mark before = my_mark(chore);
  my_mark(chore).begin_reading();
  return before;
}

void end_reading(Chore chore, core::Microseconds left, core::Place lowest) {
  const pg::Locked locked(shared->lock);
  my_mark(chore).end_reading(left, lowest);
}

void give_up_reading(Chore chore, const core::Mark& before) {
  const pg::Locked locked(shared->lock);
  my_mark(chore).lower(before.instant);
}

bool has_calls() { return mine->has_calls(); }

void be_quiet_until(core::Microseconds instant) {
  const pg::Locked locked(shared->lock);
  mine->quiet_until = instant;
}

Calls take_calls() {
  const pg::Locked locked(shared->lock);
  std::span<const std::int64_t> called = mine->called();
  Calls calls = {.is_all = mine->is_calling_all, .queue_ids = {called.begin(), called.end()}};
  mine->is_calling_all = false;
  mine->call_count = 0;
  return calls;
}

void call_again(const Calls& calls) {
  const pg::Locked locked(shared->lock);
  mine->is_calling_all |= calls.is_all;
  for (std::int64_t queue_id : calls.queue_ids) add_call(*mine, queue_id);
}

bool take_change() {
  const pg::Locked locked(shared->lock);
  return std::exchange(mine->has_change, false);
}

bool has_change() {
  const pg::Locked locked(shared->lock);
  return mine->has_change;
}

bool step_down() {
  const pg::Locked locked(shared->lock);
  if (mine->has_change) return false;
  *mine = {};
  mine = nullptr;
  return true;
}

void note_sweep(core::Microseconds now) {
  const pg::Locked locked(shared->lock);
  mine->swept_at = now;
}

std::optional<ManagerReport> report_on_manager(std::uint32_t database) {
  const pg::Locked locked(shared->lock);
  const Entry* entry = find(database);
  if (entry == nullptr) return std::nullopt;
  return ManagerReport{
      .process_id = entry->process_id, .since = entry->since, .swept_at = entry->swept_at};
}

} // namespace jobq::queue
