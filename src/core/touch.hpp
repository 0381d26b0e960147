// What a transaction has done to a lane, in its own memory: the lowest tag that it put and the
// lowest that it took. Its callbacks lower the cursor by these. They are minima over the whole
// transaction: what a savepoint undid stays in, and lowering too far is safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "core/lane.hpp"
#include "core/waiters.hpp"

namespace jobq::core {

struct LaneKey {
  QueueName queue;
  std::int32_t priority = 0;

  friend bool operator==(const LaneKey&, const LaneKey&) = default;
};

struct Touch {
  LaneKey key;
  Tag put = kNoTag;
  Tag take = kNoTag;
  Tag purged = kBeforeAll;  // the whole lane was deleted up to here
  bool is_attached = false; // counted in the lane's `open`
  bool is_laneless = false; // has put or taken while there was no lane
  std::uint32_t lane = 0;   // where it is, if attached: it stays there as long

  bool is_used() const { return is_attached || is_laneless; }
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
