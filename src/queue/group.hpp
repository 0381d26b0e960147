// Groups and their weights: how large a share of its queue each has. Every job that becomes ready
// asks, so each session keeps the weights of the queues that it used, and forgets them when a
// trigger on jobq.group_weight says that one has changed.
#pragma once

#include <cstdint>

#include "core/lane.hpp"
#include "pg/value.hpp"

namespace jobq::queue {

// What a lane needs to know of a job's group.
struct GroupTurn {
  std::uint64_t hash = 0; // of its key, the same in all sessions; 0: no group
  core::Tag stride = 0;
};

// To be called once, by _PG_init.
void watch_weights();

// Of a group_key, a text or NULL.
std::uint64_t group_hash(pg::Value group_key);

// The turn of a job with this group_key, a text or NULL. As new as the last lock that was taken.
GroupTurn turn_of(std::int64_t queue_id, pg::Value group_key);

// For drop_queue.
void forget_weights(std::int64_t queue_id);

} // namespace jobq::queue
