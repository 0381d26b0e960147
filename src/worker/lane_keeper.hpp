// The manager's looks at the lanes, piece by piece: at most one percent of its time, and nothing
// while no cursor has moved. A lane that is partly known comes first, with more of the time: until
// then its groups take no turns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/duration.hpp"
#include "queue/lane_check.hpp"
#include "worker/troubles.hpp"

namespace jobq::worker {

class LaneKeeper {
 public:
  // By the monotonic clock.
  bool is_due(core::Microseconds now) const { return wait_at(now) <= 0; }
  core::Microseconds wait_at(core::Microseconds now) const;

  // One piece.
  void work();

  // What failed may be tried at once.
  void forgive() { not_before_ = 0; }

  // Every lane is looked at once more, whether or not its cursor has moved; and claims look for
  // lanes that they do not know.
  void look_again();

 private:
  struct Look {
    queue::Piece piece;
    core::Lane lane;
  };
  // A lane as it was when it was last looked at from end to end.
  struct Seen {
    std::uint64_t generation = 0;
    core::Tag cursor = core::kBeforeAll;
  };
  std::optional<Look> next_look();
  void learn(const Look& look);
  void check(const Look& look);
  void end_lane();
  void complain(const core::LaneKey& lane) const;

  std::vector<Seen> seen_; // by place
  std::size_t place_ = 0;
  Seen looking_at_;
  core::Tag from_ = core::kBeforeAll;
  core::Microseconds not_before_ = 0;
  Troubles troubles_;
};

} // namespace jobq::worker
