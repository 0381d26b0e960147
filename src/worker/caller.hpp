// Tells those who LISTEN of the queues that were hungry and have something now.
#pragma once

#include "core/pace.hpp"
#include "queue/agenda.hpp"
#include "worker/troubles.hpp"

namespace jobq::worker {

class Caller {
 public:
  Caller();

  // By the monotonic clock: whether there is somebody to tell, and how long until it is to be seen.
  bool is_due(core::Microseconds now) const;
  core::Microseconds wait_at(core::Microseconds now) const;

  void work();

  // What failed may be tried at once.
  void forgive() { not_before_ = 0; }

 private:
  void be_quiet_for_a_while();

  core::Pace pace_;
  core::Microseconds quiet_until_ = 0;
  core::Microseconds not_before_ = 0;
  Troubles troubles_;
};

} // namespace jobq::worker
