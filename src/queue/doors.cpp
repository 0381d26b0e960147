#include "queue/doors.hpp"

#include <atomic>
#include <limits>
#include <new>
#include <optional>

#include "core/hunger.hpp"
#include "core/waiters.hpp"
#include "pg/session.hpp"
#include "pg/shared_memory.hpp"
#include "pg/sleep.hpp"
#include "queue/agenda.hpp"

namespace jobq::queue {

namespace {

constexpr std::size_t kDoorCount = 1024;

// Queues share a door by their hash. That costs a look for nothing, or one call too many.
struct Door {
  std::atomic<std::uint64_t> knocks;
  std::atomic<std::uint32_t> sleepers; // written under the lock
  std::atomic<bool> is_hungry;         // whether any queue is; written under the lock
  core::Hunger hunger;                 // held by the lock

  void tell() { is_hungry = hunger.is_any(); }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

struct Doors {
  pg::SharedLock lock;
  core::Sleepers line; // held by the lock, as are the waiters
  std::uint32_t waiter_count;
  Door doors[kDoorCount];
  core::Waiter waiters[1]; // one for each process
};

Doors* shared = nullptr;

std::size_t places() { return static_cast<std::size_t>(pg::most_processes()); }

void attach(void* memory) {
  shared = static_cast<Doors*>(memory);
  shared->lock.init();
  shared->line = {};
  shared->waiter_count = static_cast<std::uint32_t>(places());
}

constexpr pg::Segment kSegment = {
    .name = "jobq doors",
    .size = [] { return sizeof(Doors) + places() * sizeof(core::Waiter); },
    .attach = attach};

std::span<core::Waiter> waiters() { return {shared->waiters, shared->waiter_count}; }

Door& door_of(core::QueueName queue) {
  auto hash = (static_cast<std::uint64_t>(queue.queue_id) ^ queue.database * 0x100000001b3ULL) *
              0x9e3779b97f4a7c15ULL;
  return shared->doors[hash >> 54]; // ten bits: kDoorCount
}

core::QueueName here(std::int64_t queue_id) {
  return {.database = pg::my_database(), .queue_id = queue_id};
}

// Only while the lock is held.
void grant(core::QueueName queue, std::int64_t most) {
  core::grant(shared->line, waiters(), queue, most,
              [](std::int32_t process) { pg::wake_process(process); });
}

void feed(Door& door, core::QueueName queue) {
  if (!door.hunger.take(queue)) return;
  door.tell();
  call(queue.database, queue.queue_id);
}

core::Waiter& my_place() { return waiters()[static_cast<std::size_t>(pg::my_process())]; }

void count_sleeper(std::int32_t by) {
  for (std::int64_t queue_id : my_place().awaited())
    door_of(here(queue_id)).sleepers += static_cast<std::uint32_t>(by);
}

// A token that this process took and has not used yet.
std::optional<core::QueueName> in_hand;

void leave_line() {
  const pg::Locked locked(shared->lock);
  if (!my_place().is_waiting) return;
  count_sleeper(-1);
  std::optional<core::QueueName> token = core::leave(shared->line, waiters(), pg::my_process());
  if (token) grant(*token, 1);
  if (in_hand) grant(*in_hand, 1);
  in_hand.reset();
}

std::optional<std::int64_t> promised;

} // namespace

void request_doors() { pg::request_segment(kSegment); }

// Sleepers join the line before they look at the queue, and claims read `knocks` before their
// snapshot; both then see the job, or are seen here.
void knock(std::int64_t queue_id, std::int64_t jobs) {
  core::QueueName queue = here(queue_id);
  Door& door = door_of(queue);
  door.knocks += 1;
  if (door.sleepers == 0 && !door.is_hungry) return;
  const pg::Locked locked(shared->lock);
  grant(queue, jobs);
  feed(door, queue);
}

void knock_for_all(std::int64_t queue_id) {
  knock(queue_id, std::numeric_limits<std::int64_t>::max());
}

void knock_everywhere() {
  const pg::Locked locked(shared->lock);
  for (Door& door : shared->doors) {
    door.knocks += 1;
    door.hunger.forget(pg::my_database());
    door.tell();
  }
  core::grant_all(shared->line, waiters(), pg::my_database(),
                  [](std::int32_t process) { pg::wake_process(process); });
  call_all();
}

void become_hungry(std::int64_t queue_id) {
  Door& door = door_of(here(queue_id));
  const pg::Locked locked(shared->lock);
  door.hunger.add(here(queue_id));
  door.tell();
}

Appetite::Appetite(std::int64_t queue_id)
    : queue_id_(queue_id), knocks_(door_of(here(queue_id)).knocks) {
  pg::full_barrier();
}

// What came since the claim's first look it may not have seen: that is called at once.
void Appetite::stay_hungry() const {
  core::QueueName queue = here(queue_id_);
  Door& door = door_of(queue);
  const pg::Locked locked(shared->lock);
  door.hunger.add(queue);
  door.tell();
  if (door.knocks != knocks_) feed(door, queue);
}

Sleeper::Sleeper() { pg::at_exit(leave_line); }

Sleeper::~Sleeper() { leave_line(); }

void Sleeper::join(std::span<const std::int64_t> queue_ids) {
  leave_line();
  const pg::Locked locked(shared->lock);
  core::join(shared->line, waiters(), pg::my_process(), pg::my_database(), queue_ids);
  count_sleeper(1);
}

bool Sleeper::take_token() {
  const pg::Locked locked(shared->lock);
  if (!core::take_token(waiters(), pg::my_process())) return false;
  if (in_hand) grant(*in_hand, 1);
  in_hand = my_place().token;
  return true;
}

void Sleeper::use_token() { in_hand.reset(); }

void Sleeper::use_token_for(std::int64_t queue_id) {
  if (in_hand == here(queue_id)) in_hand.reset();
}

void break_promise() {
  if (promised) knock(*promised, 1);
  promised.reset();
}

void promise_claim(std::int64_t queue_id) {
  pg::at_exit(break_promise);
  if (promised != queue_id) break_promise();
  promised = queue_id;
}

void keep_promise(std::int64_t queue_id) {
  if (promised == queue_id) promised.reset();
}

} // namespace jobq::queue
