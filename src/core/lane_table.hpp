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
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "core/groups.hpp"
#include "core/lane.hpp"
#include "core/touch.hpp"

namespace jobq::core {

struct LaneSlot {
  enum class State : std::uint8_t {
    free,     // -> building
    building, // -> open, or free if the builder fails; for everybody else there is no lane
    open,     // -> building, for another key or anew, or free if its database is forgotten
  };
  State state = State::free;
  LaneKey key;
  Lane lane;
  std::uint32_t next = 0;     // in its bucket, or of the free ones; counted from 1, 0: none
  bool may_miss_puts = false; // rows put without a lane that the builder's snapshot does not show
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
  std::int32_t copies_open = 0;   // transactions that copy into the tables
  std::uint64_t found_too_high = 0;
  std::uint32_t used_lanes = 0; // slots behind these have never been used
  std::uint32_t free_lane = 0;  // the first of those that are free again; counted from 1, 0: none
  std::uint32_t next_lane = 0;  // where the search for one to reuse goes on
  Tag evicts_from = kBeforeAll; // one that has jobs
  std::uint32_t next_queue = 0; // which of a queue's places to reuse
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
  bool is_partly = false; // only the groups' last tags: not all were read
};

class LaneTable {
 public:
  // All zero at the start. As many buckets as slots is a good number.
  LaneTable(LaneCommon& common, std::span<LaneSlot> slots, std::span<std::uint32_t> buckets,
            std::span<KnownQueue> queues, std::span<Group> groups)
      : common_(&common), slots_(slots), buckets_(buckets), queues_(queues), groups_(groups) {}

  // The tag of a row that is about to be inserted: enqueue, promotion, retry, reschedule, replace.
  // A ready row is never updated: what a snapshot saw of the old one would hide the new one.
  Tag put(Touch& touch, const Turn& turn);

  // The same, but nothing if the lane is yet to be built, or built anew: the caller tries that,
  // then puts.
  std::optional<Tag> try_put(Touch& touch, const Turn& turn);

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

  // Whom a new lane may send away: a lane with jobs is made again by the next who comes there, so
  // with more of them than there is room for nothing else would be done.
  enum class Eviction { of_idle, of_any };

  // A place for a new lane, and its generation, for one builder: first this, then a snapshot that
  // is newer (in REPEATABLE READ too), then the last tags of the groups, then install. Nothing if
  // the key has a builder, or a lane that is not to be rebuilt; if no lane may go, one that no open
  // transaction has used; or if the transaction has taken rows of this one: its snapshots do not
  // show them.
  std::optional<std::uint32_t> reserve(const Touch& touch, Eviction eviction = Eviction::of_any);
  void remember(std::uint32_t at, std::uint64_t group, Tag last);
  void install(std::uint32_t at, const Backlog& backlog, Tag clock);
  void give_back(std::uint32_t at);
  bool is_being_built(const LaneKey& key) const;
  // Whether a lane with jobs may be sent away, once in so long: one that nobody comes to must not
  // stay for ever.
  bool take_eviction(Tag clock, Tag rest);

  // What a builder has left out is learnt piece by piece, each in a snapshot newer than install, by
  // a transaction that has taken no rows of the lane; once all tags up to the start are read, all
  // is known. A lane of another generation learns nothing: false.
  bool learn(const LaneKey& key, std::uint64_t generation, std::uint64_t group, Tag last);
  void know_all(const LaneKey& key, std::uint64_t generation);

  // COPY goes past the lanes. begin_copy once a transaction, before the first row; end_copy in its
  // callback, after copied if it was committed.
  void begin_copy();
  void copied(std::uint32_t database);
  void end_copy();

  // Rows by another hand that nobody spoke of: a tag was found that the lane has not given; and
  // there may be some where nobody has looked.
  void distrust(const LaneKey& key, std::uint64_t generation, Tag found);
  void doubt_queues(std::uint32_t database);

  // The database is gone, or the extension in it.
  void forget(std::uint32_t database);

  // Before the snapshot in which the queue's priorities are looked up; the result goes to
  // end_survey, once each of them has a lane.
  std::uint64_t begin_survey(const QueueName& queue);
  void end_survey(const QueueName& queue, std::uint64_t doubted);

  // The priorities of the queue that have a lane, in no order: visit(priority, lane). Whether there
  // are rows in these only, and none by another hand. What has no lane is looked up, in a survey.
  template <typename Visit>
  bool visit(const QueueName& queue, Visit visit) const {
    bool is_any_foreign = false;
    for (const LaneSlot* slot = first_of(queue); slot != nullptr; slot = slot_at(slot->next)) {
      if (slot->state != LaneSlot::State::open || slot->key.queue != queue) continue;
      is_any_foreign |= slot->lane.is_foreign;
      visit(slot->key.priority, std::as_const(slot->lane));
    }
    const KnownQueue* entry = known(queue);
    return entry != nullptr && entry->is_complete && !is_any_foreign;
  }

  const Lane* find(const LaneKey& key) const;

  // The manager looks for free rows below the cursor without locking: reads, takes a snapshot, and
  // tells the lowest that it found. Whether the cursor was too high and nobody was about to lower
  // it. One row tells as much as all do, so a lane may be looked at piece by piece, each with its
  // own reading and snapshot; a piece without a find says nothing about the others.
  Reading begin_check(const LaneKey& key) const;
  bool end_check(const LaneKey& key, const Reading& reading, Tag found);

  // For people: slot by slot, the lock may be let go between two. Null if there is no open lane.
  std::size_t size() const { return slots_.size(); }
  const LaneSlot* at(std::size_t i) const;
  // Of all lanes, also those that are gone.
  std::uint64_t found_too_high() const { return common_->found_too_high; }

  // Adds how many groups have a backlog, for each slot, as far as these places of groups tell.
  std::size_t group_places() const { return groups_.size(); }
  void count_groups(std::span<std::uint32_t> by_slot, std::size_t from = 0,
                    std::size_t to = std::numeric_limits<std::size_t>::max()) const;

 private:
  LaneSlot* slot_at(std::uint32_t link) const { return link != 0 ? &slots_[link - 1] : nullptr; }
  std::uint32_t link_to(const LaneSlot& slot) const;
  std::uint32_t* bucket(const QueueName& queue) const;
  LaneSlot* first_of(const QueueName& queue) const;
  LaneSlot* find_slot(const LaneKey& key) const;
  LaneSlot* find_open(const LaneKey& key) const;
  Lane* find_generation(const LaneKey& key, std::uint64_t generation) const;
  Lane* find(const Touch& touch) const;
  Lane* meet(Touch& touch);
  void leave(Touch& touch);
  Tag give(Lane& lane, Touch& touch, const Turn& turn);
  Tag give_without_lane(const LaneKey& key, Tag clock);
  void restore(const Touch& touch);
  LaneSlot* choose(Eviction eviction);
  LaneSlot* take_free();
  int readiness_to_go(const LaneSlot& slot) const;
  void retire(const LaneSlot& slot);
  void chain(LaneSlot& slot, const LaneKey& key);
  void unchain(LaneSlot& slot);
  void free(LaneSlot& slot);
  void remove(LaneSlot& slot);
  void mark_foreign(LaneSlot& slot);
  Group* place_group(std::uint32_t at, std::uint64_t hash);
  std::span<KnownQueue> places_of(const QueueName& queue) const;
  KnownQueue* known(const QueueName& queue) const;
  void doubt(const QueueName& queue);

  LaneCommon* common_;
  std::span<LaneSlot> slots_;
  std::span<std::uint32_t> buckets_; // by queue: the first slot, counted from 1; 0: none
  std::span<KnownQueue> queues_;
  std::span<Group> groups_;
};

} // namespace jobq::core
