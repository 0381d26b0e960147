// Who sleeps until a queue has something to claim, and who is woken when it has. A wake is a token:
// it is given to one sleeper for one job, the one that came first, and a sleeper that leaves with a
// token in hand passes it on. So m jobs wake min(m, sleepers), not all of them.
//
// Pure arithmetic on arrays that shared memory holds; the caller has the lock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace jobq::core {

// A queue of one of the server's databases.
struct QueueName {
  std::uint32_t database = 0;
  std::int64_t queue_id = 0;

  friend bool operator==(const QueueName&, const QueueName&) = default;
};

inline constexpr std::size_t kMostAwaited = 64;
inline constexpr std::int32_t kNobody = -1;

// A process's place in the line of sleepers; its index is the process's number.
struct Waiter {
  std::int32_t before = kNobody;
  std::int32_t behind = kNobody;
  bool is_waiting = false;
  bool has_token = false;
  QueueName token; // what woke it
  std::uint32_t database = 0;
  std::uint32_t queue_count = 0;
  std::array<std::int64_t, kMostAwaited> queues;

  std::span<const std::int64_t> awaited() const { return {queues.data(), queue_count}; }
};

// The line, the longest waiting first.
struct Sleepers {
  std::int32_t first = kNobody;
  std::int32_t last = kNobody;
};

// At the line's end. At most kMostAwaited queues; the process is not in the line yet.
void join(Sleepers& line, std::span<Waiter> waiters, std::int32_t process, std::uint32_t database,
          std::span<const std::int64_t> queues);

// Returns the token that is to be passed on, if there is one. The process need not be in the line.
std::optional<QueueName> leave(Sleepers& line, std::span<Waiter> waiters, std::int32_t process);

// Whether the process was woken; it may be woken again from here on.
bool take_token(std::span<Waiter> waiters, std::int32_t process);

// Gives tokens to at most so many of those that wait for the queue and have none; wake(process) is
// called for each. Returns how many.
template <typename Wake>
std::int64_t grant(const Sleepers& line, std::span<Waiter> waiters, QueueName queue,
                   std::int64_t most, Wake wake) {
  std::int64_t granted = 0;
  for (std::int32_t at = line.first; at != kNobody && granted < most;
       at = waiters[static_cast<std::size_t>(at)].behind) {
    Waiter& waiter = waiters[static_cast<std::size_t>(at)];
    if (waiter.has_token || waiter.database != queue.database) continue;
    bool is_awaited = false;
    for (std::int64_t queue_id : waiter.awaited()) is_awaited |= queue_id == queue.queue_id;
    if (!is_awaited) continue;
    waiter.has_token = true;
    waiter.token = queue;
    ++granted;
    wake(at);
  }
  return granted;
}

// The same for all who wait for any queue of the database.
template <typename Wake>
void grant_all(const Sleepers& line, std::span<Waiter> waiters, std::uint32_t database, Wake wake) {
  for (std::int32_t at = line.first; at != kNobody;
       at = waiters[static_cast<std::size_t>(at)].behind) {
    Waiter& waiter = waiters[static_cast<std::size_t>(at)];
    if (waiter.has_token || waiter.database != database) continue;
    waiter.has_token = true;
    waiter.token = {.database = database, .queue_id = waiter.queues[0]};
    wake(at);
  }
}

} // namespace jobq::core
