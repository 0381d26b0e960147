// What a transaction has done to a lane, in its own memory: the lowest tag that it put and the
// lowest that it took. Its callbacks lower the cursor by these. They are minima over the whole
// transaction: what a savepoint undid stays in, and lowering too far is safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/lane.hpp"
#include "core/waiters.hpp"

namespace jobq::core {

struct LaneKey {
  QueueName queue;
  std::int32_t priority = 0;

  friend bool operator==(const LaneKey&, const LaneKey&) = default;
};

// What a transaction's puts have made of the last tag of a group, as long as nobody else has put in
// between.
struct Given {
  std::uint64_t group = 0;
  Tag before = kNoTag;
  Tag after = kNoTag; // kNoTag: it has not put
};

struct Touch {
  // An abort works them off under the lock.
  static constexpr std::size_t kMostGroups = 1000;

  LaneKey key;
  Tag put = kNoTag;
  Tag take = kNoTag;
  Tag purged = kBeforeAll;       // the whole lane was deleted up to here
  bool is_dropped = false;       // the queue goes with this transaction, and never comes back
  bool is_attached = false;      // counted in the lane's `open`
  bool is_laneless = false;      // has put or taken while there was no lane
  std::uint32_t lane = 0;        // where it is, if attached: it stays there as long
  std::vector<Given> given = {}; // in the order of the groups

  bool is_used() const { return is_attached || is_laneless; }

  // Before the locked step of a put, as it allocates. A group that was not expected, or is one too
  // many, does not get its turns back when the transaction is rolled back.
  void expect(std::uint64_t group) {
    auto place = std::ranges::lower_bound(given, group, {}, &Given::group);
    if (place != given.end() && place->group == group) return;
    if (given.size() < kMostGroups) given.insert(place, Given{.group = group});
  }
  Given* given_to(std::uint64_t group) {
    auto place = std::ranges::lower_bound(given, group, {}, &Given::group);
    return place != given.end() && place->group == group ? &*place : nullptr;
  }

  // As new, for the same lane. Allocates nothing.
  void reset() {
    put = take = kNoTag;
    purged = kBeforeAll;
    is_dropped = is_attached = is_laneless = false;
    given.clear();
  }
};

// A take is noted before the DELETE that may fail: provisionally, at a tag that is low enough. Once
// the rows are known, `end` puts the lowest of them (kNoTag: none) in its place.
class Taking {
 public:
  explicit Taking(Touch& touch, Tag provisional) : touch_(&touch), before_(touch.take) {
    touch.take = std::min(before_, provisional);
  }
  void end(Tag lowest) { touch_->take = std::min(before_, lowest); }

 private:
  Touch* touch_;
  Tag before_;
};

// A transaction's touches. An entry is made before the first locked step that it is for, as that
// can fail; it stays where it is until the transaction's end.
class Touches {
 public:
  Touch& of(const LaneKey& key) {
    for (Touch& touch : touches_)
      if (touch.key == key) return touch;
    return touches_.emplace_back(Touch{.key = key});
  }

  // PREPARE TRANSACTION is refused then: nobody would lower after COMMIT PREPARED.
  bool is_any_used() const {
    return std::ranges::any_of(touches_, [](const Touch& touch) { return touch.is_used(); });
  }

  auto begin() { return touches_.begin(); }
  auto end() { return touches_.end(); }
  void clear() { touches_.clear(); }

 private:
  std::deque<Touch> touches_;
};

} // namespace jobq::core
