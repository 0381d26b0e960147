#include "queue/notes.hpp"

#include <array>

#include "pg/clock.hpp"
#include "pg/command.hpp"
#include "pg/ending.hpp"
#include "queue/doors.hpp"
#include "queue/lanes.hpp"

namespace jobq::queue {

namespace {

struct QueueNote {
  std::int64_t queue_id = 0;
  std::int64_t put = 0;
  std::int64_t taken = 0;
  bool is_all_taken = false;
  bool is_changed = false;
  bool is_new = false;
};

pg::Notes<QueueNote>& queues() {
  static auto* notes = new pg::Notes<QueueNote>;
  return *notes;
}

QueueNote& note_on(std::int64_t queue_id) {
  return queues().find_or_add(
      [queue_id](const QueueNote& note) { return note.queue_id == queue_id; },
      {.queue_id = queue_id});
}

pg::Notes<Attempt>& stops() {
  static auto* stops = new pg::Notes<Attempt>;
  return *stops;
}

// Of the whole transaction: to look too early, for a row that a savepoint took back, is no harm.
constexpr std::array<core::Microseconds, kChoreCount> kNothing = [] {
  std::array<core::Microseconds, kChoreCount> nothing{};
  nothing.fill(core::kForever);
  return nothing;
}();
std::array<core::Microseconds, kChoreCount> earliest = kNothing;
bool has_copied = false;

void tell_of_commit(const QueueNote& note) {
  if (note.is_new) become_hungry(note.queue_id);
  if (note.is_changed)
    knock_for_all(note.queue_id);
  else if (note.put > 0)
    knock(note.queue_id, note.put);
}

void tell_of_abort(const QueueNote& note) {
  if (note.is_all_taken)
    knock_for_all(note.queue_id);
  else if (note.taken > 0)
    knock(note.queue_id, note.taken);
}

void forget() {
  earliest = kNothing;
  has_copied = false;
}

void at_commit() {
  queues().tell_all(tell_of_commit);
  stops().tell_all(stop_execution);
  for (int chore = 0; chore < kChoreCount; ++chore) {
    core::Microseconds instant = earliest[static_cast<std::size_t>(chore)];
    if (instant != core::kForever) lower_mark(static_cast<Chore>(chore), instant);
  }
  if (has_copied) {
    note_copy(pg::monotonic_now());
    knock_everywhere();
  }
  forget();
}

void at_abort() {
  queues().tell_all(tell_of_abort);
  stops().clear();
  break_promise(); // whoever was to be told may not have been
  forget();
}

constexpr pg::Endings kEndings = {.committed = at_commit,
                                  .aborted = at_abort,
                                  .level_kept =
                                      [](int level) {
                                        queues().keep(level);
                                        stops().keep(level);
                                      },
                                  .level_lost =
                                      [](int level) {
                                        queues().tell_lost(level, tell_of_abort);
                                        stops().tell_lost(level, [](const Attempt&) {});
                                      }};

} // namespace

// COPY into jobq's tables (a restore) goes past the verbs.
void watch_notes() {
  pg::watch_endings(kEndings);
  pg::on_copy_into_extension([] {
    has_copied = true;
    begin_copy_into_lanes();
  });
}

void note_ready(std::int64_t queue_id, std::int64_t jobs) { note_on(queue_id).put += jobs; }

void note_taken(std::int64_t queue_id, std::int64_t jobs) { note_on(queue_id).taken += jobs; }

void note_all_taken(std::int64_t queue_id) { note_on(queue_id).is_all_taken = true; }

void note_new_queue(std::int64_t queue_id) { note_on(queue_id).is_new = true; }

void note_queue(std::int64_t queue_id) { note_on(queue_id).is_changed = true; }

void note_stop(const Attempt& attempt) { stops().add(attempt); }

void note_instant(Chore chore, core::Microseconds instant) {
  core::Microseconds& lowest = earliest[static_cast<std::size_t>(chore)];
  lowest = std::min(lowest, instant);
}

core::Place first_noted(Chore chore) {
  if (has_copied) return core::kBeginning;
  return {.instant = earliest[static_cast<std::size_t>(chore)]};
}

} // namespace jobq::queue
