// The walk along a queue's ready jobs, stretch by stretch, and which of them a claim may take.
// Claims take by it; who waits looks by it, so both agree on what there is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/verdict.hpp"
#include "pg/index_walk.hpp"
#include "pg/snapshot.hpp"
#include "pg/table.hpp"
#include "queue/queue.hpp"
#include "queue/survey.hpp"
#include "queue/tables.hpp"

namespace jobq::queue {

// The tables that a ready job is looked up in.
struct BesideLine {
  pg::Table jobs{JobTable::shape};
  pg::Table leases{LeaseTable::shape};
  pg::IndexWalk job{jobs, "job_pkey"};
  pg::IndexWalk lease{leases, "lease_pkey"};
};

class ReadyLine {
 public:
  // The stretches were asked for before.
  ReadyLine(const Queue& queue, std::span<const Stretch> stretches,
            pg::View view = pg::View::transaction);

  // To the first and the next job. False: there is none.
  bool seek();
  bool next();

  // Of the job that the walk stands at:

  // In which of the stretches it stands.
  std::size_t stretch() const { return stretch_; }
  core::Tag tag() const { return row_.int8(ReadyTable::tag); }
  // Another transaction has it.
  bool is_held() { return row_.is_held(); }
  // It is whole: its job is there, it has no lease, and if its limits are reached it can be buried.
  // Anything else is a restore under way, or a hand in the tables.
  bool is_whole();
  // Only after is_whole(): whether it may be tried again, and why not.
  const core::Verdict& verdict() const { return verdict_; }

  core::Counters counters() const;
  core::Limits limits() const;
  pg::IndexWalk& row() { return row_; }
  pg::IndexWalk& job() { return beside_->job; }
  pg::Table& leases() { return beside_->leases; }

 private:
  bool begin_stretch();

  const Queue& queue_;
  std::span<const Stretch> stretches_;
  std::size_t stretch_ = 0;
  pg::FreshSnapshot snapshot_;
  pg::Table ready_{ReadyTable::shape};
  pg::IndexWalk row_{ready_, "ready_pkey"};
  std::optional<BesideLine> beside_; // once there is a job
  core::Verdict verdict_;
};

// Whether a claim would get something now, as far as one can tell without taking it.
struct Sight {
  bool is_claimable = false;
  bool is_crowded = false; // nothing so far, but the line goes on behind many that others have
};
Sight look_at_line(const Queue& queue, pg::View view = pg::View::transaction);

// How many jobs claims would get now, counted up to `most`, and the first of them.
struct Backlog {
  std::int64_t claimable = 0;
  std::int64_t first = 0;
};
Backlog look_at_backlog(const Queue& queue, std::int64_t most);

} // namespace jobq::queue
