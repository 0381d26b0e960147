// The manager's part in schedules: it fires what is due, looks now and then whether all stand as
// they should, and prunes what has become of them.
#pragma once

#include <cstdint>
#include <optional>

#include "core/duration.hpp"
#include "schedule/fire.hpp"
#include "worker/troubles.hpp"

namespace jobq::worker {

class ScheduleKeeper {
 public:
  // By the monotonic clock.
  bool is_due(core::Microseconds now) const { return wait_at(now) <= 0; }
  core::Microseconds wait_at(core::Microseconds now) const;

  // A page of what is due; and one of the minute's look, or of what became of instants long ago.
  void work();

  // What failed may be tried at once.
  void forgive() { not_before_ = 0; }

  // Every schedule is looked at once more, and old runs are pruned.
  void look_again();

  // At every turn: a clock that fell back makes instants come again that were dealt with.
  void look_at_clock();

 private:
  void fire();
  void check();
  void prune();
  void tell_of_rest(bool is_home);
  bool fail(const std::optional<pg::Error>& error);

  core::Microseconds not_before_ = 0;
  std::optional<core::Microseconds> second_look_at_; // at those that were left
  schedule::Passed passed_;
  std::optional<std::int64_t> checked_; // the last id that was looked at
  bool is_to_prune_ = false;
  bool was_home_ = true;
  core::Microseconds offset_ = 0; // wall clock - monotonic one, as last seen
  Troubles troubles_;
};

} // namespace jobq::worker
