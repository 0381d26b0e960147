// A chore of the manager (promoting, rescuing, pruning): when it is due, its steps, and its
// troubles.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "pg/error.hpp"
#include "queue/agenda.hpp"
#include "queue/sweep.hpp"
#include "worker/troubles.hpp"

namespace jobq::worker {

class ChoreKeeper {
 public:
  explicit ChoreKeeper(queue::Chore chore) : chore_(chore) {}

  // By the monotonic clock: whether it is due, and how long until then, as far as is known.
  bool is_due(core::Microseconds now) const;
  core::Microseconds wait_at(core::Microseconds now) const;

  // One step: a page of rows.
  void work();

  // What failed may be tried at once.
  void forgive() { not_before_ = 0; }

  // Jobs that were passed over are tried again.
  void look_again();

 private:
  core::Microseconds restored_at() const;
  void succeed(const queue::Page& page, const queue::Rest& rest);
  void complain_of(const std::vector<queue::BadJob>& bad);

  queue::Chore chore_;
  core::Microseconds not_before_ = 0;
  std::optional<core::Microseconds> second_look_at_; // at rows that were due and left
  Troubles troubles_;
  queue::Course course_;
  std::set<std::int64_t> complained_;
};

} // namespace jobq::worker
