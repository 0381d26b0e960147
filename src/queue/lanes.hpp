// The lanes of this server (core/lane_table), in shared memory, and what a transaction's end means
// to those that it has touched. Nothing here reads a table: see survey for that.
#pragma once

#include <cstdint>

#include "core/lane_table.hpp"
#include "pg/shared_memory.hpp"

namespace jobq::queue {

// To be called by _PG_init while the server preloads its libraries, in this order, before
// watch_notes: sleepers are woken when the cursors are low enough.
void request_lanes();
void watch_lanes();

pg::SharedLock& lanes_lock();
core::LaneTable lanes();

// A step on the lanes, under their lock. It is short, raises nothing and allocates nothing.
template <typename Step>
auto in_lanes(Step step) {
  const pg::Locked locked(lanes_lock());
  core::LaneTable table = lanes();
  return step(table);
}

// Now, for tags that are given where there is no lane, in nanoseconds.
core::Tag lane_clock();

core::QueueName queue_name(std::int64_t queue_id);

// What this transaction has done to the lane, so far nothing perhaps. It lives until the
// transaction's end. To be asked for before the first step that is for it.
core::Touch& touch_of(std::int64_t queue_id, std::int32_t priority);

// COPY is about to put rows into ready, past the lanes. It cannot be PREPAREd: nobody would say so
// at COMMIT PREPARED.
void begin_copy_into_lanes();

// A database, or the extension in it, is gone or has become another.
void forget_lanes(std::uint32_t database);

} // namespace jobq::queue
