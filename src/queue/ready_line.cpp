#include "queue/ready_line.hpp"

namespace jobq::queue {

namespace {

constexpr int kFarthestLook = 100;

bool is_finished(pg::Value job_id) {
  pg::Table finished(FinishedTable::shape);
  return pg::IndexWalk(finished, "finished_pkey").seek({job_id});
}

} // namespace

ReadyLine::ReadyLine(const Queue& queue, std::span<const Stretch> stretches, pg::View view)
    : queue_(queue), stretches_(stretches), snapshot_(view) {}

bool ReadyLine::seek() {
  stretch_ = 0;
  return begin_stretch();
}

bool ReadyLine::next() {
  if (row_.next()) return true;
  ++stretch_;
  return begin_stretch();
}

bool ReadyLine::begin_stretch() {
  for (; stretch_ < stretches_.size(); ++stretch_) {
    const Stretch& stretch = stretches_[stretch_];
    if (row_.seek({pg::int8(queue_.queue_id), pg::int2(stretch.priority)}, pg::int8(stretch.from)))
      return true;
  }
  return false;
}

bool ReadyLine::is_whole() {
  if (!beside_) beside_.emplace();
  std::int64_t job_id = row_.int8(ReadyTable::job_id);
  if (!beside_->job.find(job_id) || beside_->lease.find(job_id)) return false;
  verdict_ = core::verdict_on_ready(counters(), limits());
  return verdict_.fate == core::Fate::again || !is_finished(row_.at(ReadyTable::job_id));
}

core::Counters ReadyLine::counters() const {
  return {.attempt = row_.int4(ReadyTable::attempt),
          .tries = row_.int4(ReadyTable::tries),
          .crashes = row_.int4(ReadyTable::crashes)};
}

core::Limits ReadyLine::limits() const {
  return limits_of(queue_, beside_->job.int4_or_null(JobTable::max_attempts),
                   beside_->job.int4_or_null(JobTable::max_crashes));
}

Sight look_at_line(const Queue& queue, pg::View view) {
  const std::vector<Stretch> stretches = stretches_of(queue.queue_id);
  if (stretches.empty()) return {};
  ReadyLine line(queue, stretches, view);
  int seen = 0;
  for (bool is_row = line.seek(); is_row; is_row = line.next()) {
    if (seen++ == kFarthestLook) return {.is_crowded = true};
    if (!line.is_held() && line.is_whole()) return {.is_claimable = true};
  }
  return {};
}

Backlog look_at_backlog(const Queue& queue, std::int64_t most) {
  const std::vector<Stretch> stretches = stretches_of(queue.queue_id);
  Backlog backlog;
  if (stretches.empty()) return backlog;
  ReadyLine line(queue, stretches);
  int passed = 0;
  for (bool is_row = line.seek(); is_row && backlog.claimable < most; is_row = line.next()) {
    if (line.is_held() || !line.is_whole()) {
      if (++passed == kFarthestLook) break;
      continue;
    }
    if (backlog.claimable++ == 0) backlog.first = line.job().int8(JobTable::job_id);
  }
  return backlog;
}

} // namespace jobq::queue
