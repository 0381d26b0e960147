#include "queue/executors.hpp"

#include <algorithm>
#include <atomic>
#include <span>
#include <type_traits>
#include <utility>

#include "pg/background.hpp"
#include "pg/clock.hpp"
#include "pg/session.hpp"
#include "pg/shared_memory.hpp"
#include "queue/agenda.hpp"

namespace jobq::queue {

namespace {

// All is held by the lock; but the process in a seat reads its own flags without.
struct Executors {
  pg::SharedLock lock;
  std::uint64_t last_ticket;
  std::uint32_t count;
  Seat seats[1]; // one for each worker that the server may have
};
static_assert(std::is_trivially_copyable_v<Seat>);

Executors* shared = nullptr;
Seat* my_seat = nullptr;

std::size_t places() { return static_cast<std::size_t>(pg::most_workers()) + 1; }

void attach(void* memory) {
  shared = static_cast<Executors*>(memory);
  shared->lock.init();
  shared->count = static_cast<std::uint32_t>(places());
}

constexpr pg::Segment kSegment = {
    .name = "jobq executors",
    .size = [] { return sizeof(Executors) + places() * sizeof(Seat); },
    .attach = attach};

std::span<Seat> seats() { return {shared->seats, shared->count}; }

// A number that another process has by now must not keep the seat for ever.
constexpr core::Microseconds kLongestExit = 60 * core::kSecond;

bool is_left(const Seat& seat) { return seat.stage >= Stage::failed; }

// Only while the lock is held.
template <typename Matches>
Seat* find(Matches matches) {
  std::span<Seat> all = seats();
  auto found = std::find_if(all.begin(), all.end(), matches);
  return found == all.end() ? nullptr : &*found;
}

Seat* find_ticket(std::uint64_t ticket) {
  return find([ticket](const Seat& seat) { return seat.ticket == ticket; });
}

void set(bool& flag, bool value) { std::atomic_ref(flag).store(value); }

// The manager looks what became of it, and who is to have the place.
void leave_seat() {
  if (my_seat == nullptr) return;
  std::uint32_t database = my_seat->database;
  {
    const pg::Locked locked(shared->lock);
    Seat& seat = *std::exchange(my_seat, nullptr);
    seat.since = pg::monotonic_now();
    if (seat.stage == Stage::opened)
      seat.stage = Stage::failed;
    else
      seat.stage = seat.stage == Stage::busy ? Stage::died : Stage::left;
  }
  want_executors(database);
}

void take_in_hand(const Attempt& attempt, bool is_claiming) {
  const pg::Locked locked(shared->lock);
  my_seat->stage = Stage::busy;
  my_seat->attempt = attempt;
  my_seat->is_claiming = is_claiming;
  set(my_seat->is_stopped, false);
}

} // namespace

void request_executors() { pg::request_segment(kSegment); }

// The signal goes out while the seat still has the attempt, and what it sets off looks at the flag:
// so it can stop no other one.
void stop_execution(const Attempt& attempt) {
  const pg::Locked locked(shared->lock);
  Seat* seat = find([&](const Seat& seat) {
    return seat.database == pg::my_database() && seat.stage == Stage::busy &&
           seat.attempt == attempt;
  });
  if (seat == nullptr) return;
  set(seat->is_stopped, true);
  pg::poke(seat->process_id);
}

std::vector<int> dismiss_executors(std::uint32_t database) {
  std::vector<int> processes;
  processes.reserve(places());
  const pg::Locked locked(shared->lock);
  for (const Seat& seat : seats()) {
    if (seat.database != database || seat.process_id == 0) continue;
    if (seat.process_id == pg::my_process_id()) continue;
    if (!is_left(seat)) pg::ask_to_leave(seat.process_id);
    processes.push_back(seat.process_id);
  }
  return processes;
}

// What somebody left behind in a database without a manager is of no use to anybody.
std::optional<std::uint64_t> open_seat(std::uint32_t role, core::Microseconds now) {
  const pg::Locked locked(shared->lock);
  Seat* seat = find_ticket(0);
  if (seat == nullptr) seat = find(is_left);
  if (seat == nullptr) return std::nullopt;
  *seat = {
      .ticket = ++shared->last_ticket, .database = pg::my_database(), .role = role, .since = now};
  return seat->ticket;
}

void close_seat(std::uint64_t ticket) {
  const pg::Locked locked(shared->lock);
  Seat* seat = find_ticket(ticket);
  if (seat != nullptr && seat->process_id == 0) *seat = {};
}

std::vector<Seat> collect_seats() {
  std::vector<Seat> there = seats_of(pg::my_database());
  for (const Seat& seat : there) {
    if (!is_left(seat)) continue;
    bool is_gone = !is_leaving(seat);
    const pg::Locked locked(shared->lock);
    Seat* own = find_ticket(seat.ticket);
    if (own == nullptr) continue;
    own->stage = Stage::left;
    if (is_gone) *own = {};
  }
  return there;
}

std::vector<Seat> seats_of(std::uint32_t database) {
  std::vector<Seat> there;
  there.reserve(places());
  const pg::Locked locked(shared->lock);
  for (const Seat& seat : seats())
    if (seat.ticket != 0 && seat.database == database) there.push_back(seat);
  return there;
}

bool is_leaving(const Seat& seat) {
  return pg::monotonic_now() - seat.since < kLongestExit && pg::is_connected(seat.process_id);
}

void recall(std::uint64_t ticket, bool is_recalled) {
  const pg::Locked locked(shared->lock);
  Seat* seat = find_ticket(ticket);
  if (seat == nullptr || seat->is_recalled == is_recalled) return;
  set(seat->is_recalled, is_recalled);
  if (is_recalled && seat->process_id != 0 && !is_left(*seat)) pg::poke(seat->process_id);
}

bool sit_down(std::uint64_t ticket) {
  pg::at_exit(leave_seat);
  const pg::Locked locked(shared->lock);
  Seat* seat = find_ticket(ticket);
  if (seat == nullptr || seat->stage != Stage::opened || seat->process_id != 0) return false;
  seat->process_id = pg::my_process_id();
  my_seat = seat;
  return true;
}

void become_idle() {
  const pg::Locked locked(shared->lock);
  my_seat->stage = Stage::idle;
  my_seat->attempt = {};
  my_seat->is_claiming = false;
  set(my_seat->is_stopped, false);
}

void begin_execution(const Attempt& attempt) { take_in_hand(attempt, true); }

void keep_execution(const Attempt& attempt) { take_in_hand(attempt, false); }

bool is_still_wanted() {
  const pg::Locked locked(shared->lock);
  my_seat->is_claiming = false;
  return !my_seat->is_stopped;
}

bool is_execution_stopped() {
  return my_seat != nullptr && std::atomic_ref(my_seat->is_stopped).load();
}

bool is_recalled() { return std::atomic_ref(my_seat->is_recalled).load(); }

} // namespace jobq::queue
