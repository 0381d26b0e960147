// The lanes that there is room for, and how a transaction meets one. Full or just started means
// slower, or first in, first out, never wrong: without a lane, tags come from the clock, claims
// look from the beginning and move nothing.
//
// The table is a view of arrays in shared memory, its own object is the process's. Each method is
// one step under one lock. With a lock for each lane as well, a touch that is attached and was
// never without a lane needs only that one to claim, take and call back; put looks at other lanes
// too. Sleepers are woken after a callback's step, not before.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/groups.hpp"
#include "core/lane.hpp"
#include "core/touch.hpp"

namespace jobq::core {

struct LaneSlot {
  enum class State : std::uint8_t {
    free,     // -> building
    building, // -> open, or free if the builder fails; for everybody else there is no lane
    open,     // -> building, for another key
  };
  State state = State::free;
  LaneKey key;
  Lane lane;
};

// Whether every priority of a queue that has ready rows has a lane. It rises as a cursor does: only
// if no doubt came since before the snapshot that it rests on.
struct KnownQueue {
  QueueName queue;
  std::uint64_t doubted = 0; // when last; 0: a free place
  bool is_complete = false;
};

struct LaneCommon {
  std::uint64_t generations = 0;
  std::uint64_t doubts = 0;
  Tag laneless = kBeforeAll;      // the last tag given without a lane, or by a lane that is gone
  std::int32_t laneless_open = 0; // transactions that have put or taken without one
  std::uint32_t next_lane = 0;    // where the search for one to reuse goes on
  std::uint32_t next_queue = 0;
};

// A group's next job. The clock, in nanoseconds, matters only where there is no lane.
struct Turn {
  std::uint64_t group = 0;
  Tag stride = kMostWeight;
  Tag clock = kBeforeAll;
};

struct ClaimStart {
  Reading reading;
  Taking taking;
};

// The rows of a lane that a builder's snapshot shows.
struct Backlog {
  Tag lowest = kNoTag;
  Tag highest = kBeforeAll;
};

class LaneTable {
 public:
  LaneTable(LaneCommon& common, std::span<LaneSlot> slots, std::span<KnownQueue> queues,
            std::span<Group> groups)
      : common_(&common), slots_(slots), queues_(queues), groups_(groups) {}

  // The tag of a row that is about to be inserted: enqueue, promotion, retry, reschedule, replace.
  // A ready row is never updated: what a snapshot saw of the old one would hide the new one.
  Tag put(Touch& touch, const Turn& turn);

  // Before the snapshot. Nothing if there is no row in the lane: it is left out then. In a call
  // over several lanes, for each in turn.
  std::optional<ClaimStart> begin_claim(Touch& touch);
  void end_claim(const Touch& touch, ClaimStart& start, const Scan& scan);

  // Before a DELETE that is no claim's: cancel, reschedule, replace, purge, drop. kBeforeAll if the
  // row's tag is not known yet.
  Taking take(Touch& touch, Tag provisional);

  // The transaction's callbacks, after the change is visible.
  void commit(Touch& touch);
  void abort(Touch& touch);
  void abort_subtransaction(const Touch& touch);

  // A place for a new lane, and its generation, for one builder: first this, then a snapshot that
  // is newer (in REPEATABLE READ too), then the last tags of the groups, then install. Nothing if
  // the key has a lane or a builder; if no lane may go, one that no open transaction has used; or
  // if the transaction has taken rows of this one: its snapshots do not show them.
  std::optional<std::uint32_t> reserve(const Touch& touch);
  void remember(std::uint32_t at, std::uint64_t group, Tag last);
  void install(std::uint32_t at, const Backlog& backlog, Tag clock);
  void give_back(std::uint32_t at);

  // Before the snapshot in which the queue's priorities are looked up; the result goes to
  // end_survey, once each of them has a lane.
  std::uint64_t begin_survey(const QueueName& queue);
  void end_survey(const QueueName& queue, std::uint64_t doubted);

  // The priorities of the queue that have a lane, in no order; whether there are rows in these
  // only. What has none is looked up, in a survey.
  template <typename Visit>
  bool visit(const QueueName& queue, Visit visit) const {
    for (const LaneSlot& slot : slots_)
      if (slot.state == LaneSlot::State::open && slot.key.queue == queue) visit(slot.key.priority);
    const KnownQueue* entry = known(queue);
    return entry != nullptr && entry->is_complete;
  }

  const Lane* find(const LaneKey& key) const;

  // The manager looks for rows below the cursor without locking: reads, takes a snapshot, and tells
  // the lowest that it found. Whether the cursor was too high and nobody was about to lower it.
  Reading begin_check(const LaneKey& key) const;
  bool end_check(const LaneKey& key, const Reading& reading, Tag found);

 private:
  Lane* find(const Touch& touch);
  Lane* meet(Touch& touch);
  void leave(Touch& touch);
  LaneSlot* choose();
  void retire(const LaneSlot& slot);
  Group* place_group(std::uint32_t at, std::uint64_t hash);
  KnownQueue* known(const QueueName& queue) const;
  void doubt(const QueueName& queue);

  LaneCommon* common_;
  std::span<LaneSlot> slots_;
  std::span<KnownQueue> queues_;
  std::span<Group> groups_;
};

} // namespace jobq::core
