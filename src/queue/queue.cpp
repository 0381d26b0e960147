#include "queue/queue.hpp"

#include <algorithm>
#include <unordered_map>

#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/extension.hpp"
#include "pg/invalidation.hpp"
#include "pg/lock.hpp"
#include "pg/index_walk.hpp"
#include "pg/random.hpp"
#include "pg/snapshot.hpp"
#include "pg/table.hpp"
#include "pg/statement.hpp"
#include "pg/text.hpp"
#include "pg/transaction.hpp"
#include "queue/administer.hpp"
#include "queue/bounds.hpp"
#include "queue/tables.hpp"

namespace jobq::queue {

namespace {

constexpr std::size_t kMostCached = 1000;

// Of SQL jobs' queues. Their leases are renewed by a process that lives as long as the server.
constexpr core::Microseconds kSqlLease = 30 * core::kSecond;

// What this session knows. `is_stale` is all that the server's callback may touch.
struct Cache {
  std::unordered_map<std::int64_t, Queue> by_id;
  std::unordered_map<std::string, std::int64_t> ids;
};

bool is_stale = false;
Oid cached_relation = InvalidOid;

Cache& cache() {
  static auto* cache = new Cache;
  if (is_stale || cache->by_id.size() >= kMostCached) {
    cache->by_id.clear();
    cache->ids.clear();
    is_stale = false;
  }
  return *cache;
}

void forget(Oid relation) {
  if (relation == InvalidOid || relation == cached_relation) is_stale = true;
}

#define JOBQ_SELECT_QUEUE                                                                          \
  "SELECT queue_id, name, paused, max_attempts, max_crashes, lease, retry_base, retry_cap,"        \
  " keep_completed, keep_dead FROM jobq.queue "

constinit pg::Statement by_name(JOBQ_SELECT_QUEUE "WHERE name OPERATOR(pg_catalog.=) $1");
constinit pg::Statement by_id(JOBQ_SELECT_QUEUE "WHERE queue_id OPERATOR(pg_catalog.=) $1");

std::optional<Queue> read(const pg::Rows& rows) {
  if (rows.empty()) return std::nullopt;
  return Queue{.queue_id = rows.int8(0, 0),
               .name = std::string(rows.text(0, 1)),
               .is_paused = rows.boolean(0, 2),
               .limits = {.max_attempts = rows.int4(0, 3), .max_crashes = rows.int4(0, 4)},
               .lease = rows.int8(0, 5),
               .back_off = {.base = rows.int8(0, 6), .cap = rows.int8(0, 7)},
               .keep_completed = rows.int8_or_null(0, 8).value_or(core::kForever),
               .keep_dead = rows.int8_or_null(0, 9).value_or(core::kForever)};
}

// Stores nothing that may be older than the last change heard: not what was read while a change
// came in, nor what a transaction's one old snapshot shows.
std::optional<Queue> remember(const std::optional<Queue>& queue) {
  if (!queue || is_stale || pg::has_one_snapshot()) return queue;
  Cache& known = cache();
  known.by_id.insert_or_assign(queue->queue_id, *queue);
  known.ids.insert_or_assign(queue->name, queue->queue_id);
  return queue;
}

Oid queue_relation() { return pg::relation("queue"); }

bool is_there_now(std::int64_t queue_id) {
  pg::FreshSnapshot snapshot(pg::View::latest);
  pg::Table queues(QueueTable::shape);
  return pg::IndexWalk(queues, "queue_pkey").seek({pg::int8(queue_id)});
}

// The transaction's one snapshot may show a queue that was dropped before the lock was had.
void lock(std::int64_t queue_id, pg::LockStrength strength) {
  pg::lock_object(queue_relation(), queue_id, strength);
  if (pg::has_one_snapshot() && !is_there_now(queue_id))
    pg::raise({.sqlstate = pg::SqlState::serialization_failure,
               .message = "could not serialize access due to concurrent drop_queue",
               .hint = "Run the transaction again."});
}

// Nothing if there is no such queue.
std::optional<Queue> locked(std::string_view name, pg::LockStrength strength) {
  for (;;) {
    std::optional<Queue> seen = find_queue(name);
    if (!seen) return std::nullopt;
    lock(seen->queue_id, strength);
    std::optional<Queue> held = find_queue(name);
    if (held && held->queue_id == seen->queue_id) return held;
  }
}

Queue or_complain(const std::optional<Queue>& queue, std::string_view name) {
  if (!queue) complain_of_unknown(name);
  return *queue;
}

Datum queue_changed(FunctionCallInfo fcinfo) {
  pg::invalidate(pg::trigger_relation(fcinfo));
  return 0;
}

} // namespace

void complain_of_unknown(std::string_view name) {
  check_queue_name(name);
  std::string quoted = "\"" + std::string(name) + "\"";
  pg::raise({.sqlstate = pg::SqlState::undefined_object,
             .message = "queue " + quoted + " does not exist",
             .hint = "Check its name, or create it: SELECT jobq.create_queue(" +
                     pg::quoted_literal(name) + ")."});
}

void watch_settings() { pg::on_invalidation(forget); }

std::optional<Queue> find_queue(std::string_view name) {
  // It may have any size, and is copied from here on.
  if (name.size() > kLongestName) return std::nullopt;
  Cache& known = cache();
  auto id = known.ids.find(std::string(name));
  if (id != known.ids.end()) return known.by_id.at(id->second);
  cached_relation = pg::relation("queue");
  return remember(read(by_name.run({pg::text(name)})));
}

// Of a queue that the session knows only its number need be right.
std::optional<Queue> read_queue(std::string_view name) {
  std::optional<Queue> known = find_queue(name);
  if (!known) return read(by_name.run({pg::text(name)}));
  pg::FreshSnapshot snapshot(pg::View::latest);
  pg::Table queues(QueueTable::shape);
  pg::IndexWalk walk(queues, "queue_pkey");
  if (!walk.seek({pg::int8(known->queue_id)})) return read(by_name.run({pg::text(name)}));
  known->is_paused = walk.boolean(QueueTable::paused);
  return known;
}

std::optional<Queue> find_queue(std::int64_t queue_id) {
  Cache& known = cache();
  auto queue = known.by_id.find(queue_id);
  if (queue != known.by_id.end()) return queue->second;
  cached_relation = pg::relation("queue");
  return remember(read(by_id.run({pg::int8(queue_id)})));
}

Queue require_queue(std::string_view name) { return or_complain(find_queue(name), name); }

Queue require_queue(std::int64_t queue_id) {
  std::optional<Queue> queue = find_queue(queue_id);
  if (queue) return *queue;
  pg::raise({.sqlstate = pg::SqlState::data_corrupted,
             .message = "a job stands in queue " + std::to_string(queue_id) +
                        ", which is not in jobq.queue",
             .hint = "If a restore is under way, wait for its end."});
}

std::optional<Queue> share_queue_if_made(std::string_view name) {
  std::optional<Queue> queue = locked(name, pg::LockStrength::shared);
  if (!queue && !comes_by_itself(name)) complain_of_unknown(name);
  return queue;
}

Queue share_queue(std::string_view name) {
  return or_complain(locked(name, pg::LockStrength::shared), name);
}

Queue change_queue(std::string_view name) {
  return or_complain(locked(name, pg::LockStrength::change), name);
}

Queue have_queue(std::string_view name) {
  return or_complain(locked(name, pg::LockStrength::exclusive), name);
}

bool is_paused_now(const Queue& queue) {
  if (!queue.is_paused) return false;
  pg::FreshSnapshot snapshot(pg::View::latest);
  pg::Table queues(QueueTable::shape);
  pg::IndexWalk walk(queues, "queue_pkey");
  return !walk.seek({pg::int8(queue.queue_id)}) || walk.boolean(QueueTable::paused);
}

std::optional<Queue> share_queue(std::int64_t queue_id) {
  if (!find_queue(queue_id)) return std::nullopt;
  lock(queue_id, pg::LockStrength::shared);
  return find_queue(queue_id);
}

void hold_queue(std::int64_t queue_id) {
  pg::lock_object(queue_relation(), queue_id, pg::LockStrength::shared);
}

Queue share_or_make_queue(std::string_view name) {
  for (;;) {
    std::optional<Queue> queue = share_queue_if_made(name);
    if (queue) return *queue;
    make_queue(name, is_sql_queue(name) ? QueueSettings{.lease = kSqlLease} : QueueSettings{});
  }
}

core::Limits limits_of(const Queue& queue, std::optional<std::int32_t> max_attempts,
                       std::optional<std::int32_t> max_crashes) {
  return {.max_attempts = max_attempts.value_or(queue.limits.max_attempts),
          .max_crashes = max_crashes.value_or(queue.limits.max_crashes)};
}

TimestampTz next_try_at(const Queue& queue, std::int32_t tries, TimestampTz now) {
  core::Microseconds wait = core::back_off_after(queue.back_off, tries, pg::random_fraction());
  return std::min(core::later(now, wait, pg::kLastInstant), pg::kLastInstant);
}

JOBQ_DOOR(jobq_queue_changed) { return pg::bridge(fcinfo, queue_changed); }

} // namespace jobq::queue
