// Queues and their settings. Each session keeps those that it used, and forgets them when a
// trigger on jobq.queue says through the server's invalidation messages that one has changed: the
// rule by which the server caches its own catalogs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/back_off.hpp"
#include "core/verdict.hpp"
#include "pg/clock.hpp"

namespace jobq::queue {

struct Queue {
  std::int64_t queue_id = 0;
  std::string name;
  bool is_paused = false;
  core::Limits limits;
  core::Microseconds lease = 0;
  core::BackOff back_off;
  core::Microseconds keep_completed = 0;
  core::Microseconds keep_dead = 0;
};

// To be called once, by _PG_init.
void watch_settings();

std::optional<Queue> find_queue(std::string_view name);
std::optional<Queue> find_queue(std::int64_t queue_id);

// The same, past what the session knows: as it is now.
std::optional<Queue> read_queue(std::string_view name);

// Raise 42704 with the hint to create_queue.
[[noreturn]] void complain_of_unknown(std::string_view name);
Queue require_queue(std::string_view name);

// The queue of a job; raises if its row is missing (a restore may be under way).
Queue require_queue(std::int64_t queue_id);

// The queue, shared with whoever else puts jobs into it and kept from drop_queue until the
// transaction's end: look up, lock, and look again, since it may have been dropped in between.
Queue share_queue(std::string_view name);
// The same for the queue of a job that was looked up before; nothing if it is gone.
std::optional<Queue> share_queue(std::int64_t queue_id);
// The lock alone, for who takes a job out of a line: before the job's row, since drop_queue has the
// queue before it waits for rows.
void hold_queue(std::int64_t queue_id);
// The same, but nothing for one that comes by itself and that nobody has used yet.
std::optional<Queue> share_queue_if_made(std::string_view name);

// Whether nothing is to be claimed now. What says that a queue is paused may be old: resuming one
// wakes sleepers a moment before other sessions forget the settings that they know.
bool is_paused_now(const Queue& queue);

// The queue, kept from others who change its settings until the transaction's end.
Queue change_queue(std::string_view name);

// The queue, held alone until the transaction's end.
Queue have_queue(std::string_view name);

// share_queue, but the default queue and those of SQL jobs come to exist.
Queue share_or_make_queue(std::string_view name);

// Limits left NULL at enqueue are the queue's of this moment.
core::Limits limits_of(const Queue& queue, std::optional<std::int32_t> max_attempts,
                       std::optional<std::int32_t> max_crashes);

// When a job whose so many-th try failed now is tried again, by the queue's back-off.
TimestampTz next_try_at(const Queue& queue, std::int32_t tries, TimestampTz now);

} // namespace jobq::queue
