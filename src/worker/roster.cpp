#include "worker/roster.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>
#include <utility>

#include "pg/background.hpp"
#include "pg/clock.hpp"
#include "pg/session.hpp"
#include "pg/shared_memory.hpp"
#include "pg/sleep.hpp"
#include "queue/executors.hpp"

namespace jobq::worker {

namespace {

constexpr std::size_t kMostWishes = 64;
constexpr core::Microseconds kLongestHold = 10 * core::kSecond;
constexpr core::Microseconds kHoldSlice = core::kSecond / 100;

// Of a database that a manager was started for. Its database is zero while the place is free.
struct Place {
  std::uint32_t database = 0;
  std::int32_t process_id = 0; // 0: it has not come in yet, or has left
  std::uint64_t ticket = 0;
  Word word = Word::none;
};
static_assert(std::is_trivially_copyable_v<Place>);

struct Launcher {
  std::int32_t process; // valid while process_id is not 0
  std::int32_t process_id;
  bool has_been_there;
};

// All is held by the lock. `held` stands behind the places: for each process the database that it
// holds, or 0.
struct Roster {
  pg::SharedLock lock;
  Launcher launcher;
  std::uint64_t last_ticket;
  bool is_look_round_wished;
  bool has_too_many_wishes;
  std::uint32_t wish_count;
  std::array<std::uint32_t, kMostWishes> wishes;
  std::uint32_t place_count;
  std::uint32_t process_count;
  Place places[1];
};

Roster* shared = nullptr;

std::size_t place_count() { return static_cast<std::size_t>(pg::most_workers()) + 1; }
std::size_t process_count() { return static_cast<std::size_t>(pg::most_processes()); }

std::span<Place> places() { return {shared->places, shared->place_count}; }
std::span<std::uint32_t> held() {
  Place* end = shared->places + shared->place_count;
  return {reinterpret_cast<std::uint32_t*>(end), shared->process_count};
}

void attach(void* memory) {
  shared = static_cast<Roster*>(memory);
  shared->lock.init();
  shared->place_count = static_cast<std::uint32_t>(place_count());
  shared->process_count = static_cast<std::uint32_t>(process_count());
}

constexpr pg::Segment kSegment = {.name = "jobq roster",
                                  .size =
                                      [] {
                                        return sizeof(Roster) + place_count() * sizeof(Place) +
                                               process_count() * sizeof(std::uint32_t);
                                      },
                                  .attach = attach};

// These only while the lock is held.

Place* find(std::uint32_t database) {
  for (Place& place : places())
    if (place.database == database) return &place;
  return nullptr;
}

bool has_holder(std::uint32_t database) {
  std::span<std::uint32_t> all = held();
  return std::find(all.begin(), all.end(), database) != all.end();
}

std::uint32_t& held_by_me() { return held()[static_cast<std::size_t>(pg::my_process())]; }

void wake_launcher() {
  if (shared->launcher.process_id != 0) pg::wake_process(shared->launcher.process);
}

void wake_holders(std::uint32_t database) {
  for (std::size_t process = 0; process < held().size(); ++process)
    if (held()[process] == database) pg::wake_process(static_cast<int>(process));
}

Place* my_place = nullptr;

void leave_place() {
  const pg::Locked locked(shared->lock);
  if (my_place == nullptr) return;
  my_place->process_id = 0;
  if (my_place->word == Word::none || my_place->word == Word::here) my_place->word = Word::failure;
  wake_holders(my_place->database);
  wake_launcher();
  my_place = nullptr;
}

void resign() {
  const pg::Locked locked(shared->lock);
  if (shared->launcher.process_id == pg::my_process_id()) shared->launcher.process_id = 0;
}

bool is_holder = false; // this process; it spares all other transactions the lock

// The manager's process, or 0; asked to leave.
int call_out(std::uint32_t database) {
  const pg::Locked locked(shared->lock);
  held_by_me() = database;
  Place* place = find(database);
  if (place == nullptr || place->process_id == 0) return 0;
  pg::ask_to_leave(place->process_id);
  return place->process_id;
}

} // namespace

void request_roster() { pg::request_segment(kSegment); }

void become_launcher() {
  pg::at_exit(resign);
  const pg::Locked locked(shared->lock);
  shared->launcher = {
      .process = pg::my_process(), .process_id = pg::my_process_id(), .has_been_there = true};
  for (Place& place : places())
    if (place.process_id == 0 && place.word == Word::none) place = {};
}

std::optional<std::uint64_t> open_place(std::uint32_t database) {
  const pg::Locked locked(shared->lock);
  if (has_holder(database) || shared->is_look_round_wished) return std::nullopt;
  Place* place = find(database);
  if (place == nullptr) place = find(0);
  if (place == nullptr || place->process_id != 0) return std::nullopt;
  *place = {.database = database, .ticket = ++shared->last_ticket, .word = Word::none};
  return place->ticket;
}

void close_place(std::uint32_t database) {
  const pg::Locked locked(shared->lock);
  Place* place = find(database);
  if (place != nullptr && place->process_id == 0) *place = {};
}

std::vector<PlaceReport> collect_reports() {
  std::vector<PlaceReport> reports;
  reports.reserve(place_count());
  const pg::Locked locked(shared->lock);
  for (Place& place : places()) {
    if (place.database == 0) continue;
    reports.push_back(
        {.database = place.database, .process_id = place.process_id, .word = place.word});
    if (place.process_id == 0 && place.word != Word::none) place = {};
  }
  return reports;
}

Wishes take_wishes() {
  Wishes wishes;
  wishes.databases.reserve(kMostWishes);
  const pg::Locked locked(shared->lock);
  wishes.is_look_round = shared->is_look_round_wished;
  wishes.databases.assign(shared->wishes.begin(), shared->wishes.begin() + shared->wish_count);
  wishes.is_too_many = shared->has_too_many_wishes;
  shared->is_look_round_wished = false;
  shared->has_too_many_wishes = false;
  shared->wish_count = 0;
  return wishes;
}

bool come_in(std::uint32_t database, std::uint64_t ticket) {
  pg::at_exit(leave_place);
  const pg::Locked locked(shared->lock);
  Place* place = find(database);
  if (place == nullptr || place->ticket != ticket || place->process_id != 0) return false;
  my_place = place;
  place->process_id = pg::my_process_id();
  wake_launcher();
  if (!has_holder(database)) return true;
  place->word = Word::leave;
  return false;
}

void say(Word word) {
  const pg::Locked locked(shared->lock);
  my_place->word = word;
  wake_launcher();
}

bool has_wishes() {
  const pg::Locked locked(shared->lock);
  return shared->is_look_round_wished || shared->has_too_many_wishes || shared->wish_count > 0;
}

void dismiss(std::uint32_t database) {
  const pg::Locked locked(shared->lock);
  Place* place = find(database);
  if (place != nullptr && place->process_id != 0) pg::ask_to_leave(place->process_id);
}

bool is_in_place(std::uint32_t database, int process_id) {
  const pg::Locked locked(shared->lock);
  Place* place = find(database);
  return place != nullptr && place->process_id == process_id;
}

// It may not have connected yet; and one that has given up its place is still counted among the
// database's sessions for a moment.
void hold(std::uint32_t database) {
  pg::at_exit(release);
  is_holder = true;
  int manager = call_out(database);
  std::vector<int> executors = queue::dismiss_executors(database);
  auto is_any_there = [&] {
    return (manager != 0 && (is_in_place(database, manager) || pg::is_connected(manager))) ||
           std::any_of(executors.begin(), executors.end(), pg::is_connected);
  };
  core::Microseconds began = pg::monotonic_now();
  while (is_any_there() && pg::monotonic_now() - began < kLongestHold)
    pg::sleep(kHoldSlice, "JobqHold");
}

void release() {
  if (!std::exchange(is_holder, false)) return;
  const pg::Locked locked(shared->lock);
  held_by_me() = 0;
  wake_launcher();
}

void ask_for(std::uint32_t database) {
  const pg::Locked locked(shared->lock);
  std::span<std::uint32_t> wishes(shared->wishes.data(), shared->wish_count);
  if (std::find(wishes.begin(), wishes.end(), database) == wishes.end()) {
    if (shared->wish_count == kMostWishes)
      shared->has_too_many_wishes = true;
    else
      shared->wishes[shared->wish_count++] = database;
  }
  wake_launcher();
}

void ask_for_look_round() {
  const pg::Locked locked(shared->lock);
  shared->is_look_round_wished = true;
  wake_launcher();
}

bool has_launcher_been_there() {
  const pg::Locked locked(shared->lock);
  return shared->launcher.has_been_there;
}

bool is_held(std::uint32_t database) {
  const pg::Locked locked(shared->lock);
  return has_holder(database);
}

} // namespace jobq::worker
