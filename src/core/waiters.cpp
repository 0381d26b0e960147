#include "core/waiters.hpp"

#include <algorithm>

#include "core/pure.hpp"

namespace jobq::core {

namespace {

Waiter& at(std::span<Waiter> waiters, std::int32_t process) {
  return waiters[static_cast<std::size_t>(process)];
}

} // namespace

void join(Sleepers& line, std::span<Waiter> waiters, std::int32_t process, std::uint32_t database,
          std::span<const std::int64_t> queues) {
  Waiter& waiter = at(waiters, process);
  waiter.is_waiting = true;
  waiter.has_token = false;
  waiter.database = database;
  waiter.queue_count = static_cast<std::uint32_t>(std::min(queues.size(), kMostAwaited));
  std::copy_n(queues.begin(), waiter.queue_count, waiter.queues.begin());

  waiter.before = line.last;
  waiter.behind = kNobody;
  (line.last == kNobody ? line.first : at(waiters, line.last).behind) = process;
  line.last = process;
}

std::optional<QueueName> leave(Sleepers& line, std::span<Waiter> waiters, std::int32_t process) {
  Waiter& waiter = at(waiters, process);
  if (!waiter.is_waiting) return std::nullopt;
  (waiter.before == kNobody ? line.first : at(waiters, waiter.before).behind) = waiter.behind;
  (waiter.behind == kNobody ? line.last : at(waiters, waiter.behind).before) = waiter.before;
  waiter.is_waiting = false;
  if (!take_token(waiters, process)) return std::nullopt;
  return waiter.token;
}

bool take_token(std::span<Waiter> waiters, std::int32_t process) {
  Waiter& waiter = at(waiters, process);
  bool had = waiter.has_token;
  waiter.has_token = false;
  return had;
}

} // namespace jobq::core
