// Executors from the manager's side: for whom one is started, whose jobs can have none, and whose
// leases are renewed, since a process that is busy with a command cannot renew its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pg/background.hpp"
#include "queue/executors.hpp"
#include "worker/troubles.hpp"

namespace jobq::worker {

class ExecutorKeeper {
 public:
  // By the monotonic clock: whether it is due, and how long until then, as far as is known.
  bool is_due(core::Microseconds now) const { return wait_at(now) <= 0; }
  core::Microseconds wait_at(core::Microseconds now) const;

  void work();

  // What failed may be tried at once.
  void forgive() { not_before_ = next_place_try_ = 0; }
  void look_again();

 private:
  // Of a role that has jobs which may be claimed.
  struct Demand {
    std::uint32_t role = 0;
    std::string name;
    std::int64_t missing = 0; // executors, beyond those that have nothing in hand
    TimestampTz due_at = 0;   // its first job
  };
  struct Refusals {
    int failures = 0;
    core::Microseconds not_before = 0;
  };
  struct Starting {
    std::uint64_t ticket;
    std::uint32_t role;
    pg::StartedWorker process;
  };

  void collect();
  void see_failed_starts(core::Microseconds now);
  void note_failure(std::uint32_t role, core::Microseconds now);
  bool fail(const std::optional<pg::Error>& error);
  void renew();
  bool is_look_due() const;
  void look();
  std::vector<Demand> find_demands();
  void serve(std::vector<Demand>& demands);
  bool start(const Demand& demand);
  void lack_place(core::Microseconds now);
  void recall(const std::vector<Demand>& demands);

  std::vector<queue::Seat> seats_;
  std::vector<Starting> starting_;
  std::vector<queue::Attempt> died_;
  std::map<std::uint32_t, Refusals> refused_; // by role: processes that did not come up
  core::Microseconds renew_at_ = 0;
  std::optional<core::Microseconds> look_at_; // again, since something waits
  core::Microseconds not_before_ = 0;
  core::Microseconds next_place_try_ = 0;
  core::Microseconds next_lack_news_ = 0;
  int lacks_ = 0;  // in a row
  int places_ = 0; // that the last look went by
  Troubles troubles_;
};

} // namespace jobq::worker
