#include "queue/line.hpp"

#include <algorithm>

#include "pg/error.hpp"
#include "pg/index_walk.hpp"
#include "pg/log.hpp"
#include "pg/snapshot.hpp"
#include "pg/table.hpp"
#include "pg/statement.hpp"
#include "queue/bounds.hpp"
#include "queue/notes.hpp"
#include "queue/lanes.hpp"
#include "queue/queue.hpp"
#include "queue/tables.hpp"
#include "queue/tag.hpp"

namespace jobq::queue {

namespace {

constinit pg::Statement
    free_keys("DELETE FROM jobq.key WHERE job_id OPERATOR(pg_catalog.=) ANY ($1)");

constinit pg::Statement
    delete_commands("DELETE FROM jobq.sql_command WHERE job_id OPERATOR(pg_catalog.=) ANY ($1)");

constinit pg::Statement
    delete_failures("DELETE FROM jobq.failure WHERE job_id OPERATOR(pg_catalog.=) ANY ($1)");

// Managers start executors for SQL jobs.
void note_sql(std::int64_t queue_id) {
  std::optional<Queue> queue = find_queue(queue_id);
  if (queue && is_sql_queue(queue->name)) note_instant(Chore::execute, 0);
}

void put_ready(std::span<const Waiting> jobs) {
  if (jobs.empty()) return;
  pg::NewRows rows;
  std::optional<std::int64_t> noted_queue;
  for (const Waiting& job : jobs) {
    core::Tag tag = give_tag(job.queue_id, job.priority, job.group_key);
    rows.add({pg::int8(job.queue_id), pg::int8(tag), pg::int8(job.job_id),
              pg::int4(job.counters.attempt), pg::int4(job.counters.tries),
              pg::int4(job.counters.crashes), pg::int2(job.priority), job.group_key});
    note_ready(job.queue_id, 1);
    if (noted_queue != job.queue_id) note_sql(job.queue_id);
    noted_queue = job.queue_id;
  }
  pg::Table(ReadyTable::shape).insert(rows);
}

void put_delayed(std::span<const Waiting> jobs) {
  if (jobs.empty()) return;
  pg::NewRows rows;
  for (const Waiting& job : jobs) {
    rows.add({pg::int8(job.job_id), pg::int8(job.queue_id), pg::instant(*job.run_at),
              pg::int4(job.counters.attempt), pg::int4(job.counters.tries),
              pg::int4(job.counters.crashes)});
    note_instant(Chore::promote, *job.run_at);
  }
  pg::Table(DelayedTable::shape).insert(rows);
}

// How long the ended jobs of a queue are kept; asked for one queue after the other, mostly the
// same.
class KeepTimes {
 public:
  core::Microseconds of(const Ended& job) {
    if (job.queue_id != queue_id_) look_up(job.queue_id);
    return job.state == kCompleted ? completed_ : dead_;
  }

 private:
  void look_up(std::int64_t queue_id) {
    std::optional<Queue> queue = find_queue(queue_id);
    queue_id_ = queue_id;
    completed_ = queue ? queue->keep_completed : core::kForever;
    dead_ = queue ? queue->keep_dead : core::kForever;
  }

  std::optional<std::int64_t> queue_id_;
  core::Microseconds completed_ = 0;
  core::Microseconds dead_ = 0;
};

pg::Value instant_or_null(TimestampTz instant) {
  return instant == core::kForever ? pg::null(TIMESTAMPTZOID) : pg::instant(instant);
}

void put_finished(std::span<const Ended> jobs, KeepTimes& keep_times, TimestampTz now) {
  if (jobs.empty()) return;
  pg::NewRows rows;
  for (const Ended& job : jobs) {
    TimestampTz prune_at = core::later(now, keep_times.of(job), pg::kLastInstant);
    rows.add({pg::int8(job.job_id), pg::int8(job.queue_id), job.claimed_at, pg::instant(now),
              instant_or_null(prune_at), pg::int4(job.counters.attempt),
              pg::int4(job.counters.tries), pg::text(job.state), job.reason, job.worker,
              job.result});
    note_instant(Chore::prune, prune_at);
  }
  pg::Table(FinishedTable::shape).insert(rows);
}

void log_death(const Ended& job) {
  if (job.state != kDead) return;
  std::optional<Queue> queue = find_queue(job.queue_id);
  pg::log_at_commit("jobq: job " + std::to_string(job.job_id) + " of queue \"" +
                    (queue ? queue->name : std::to_string(job.queue_id)) +
                    "\" is dead: " + std::string(pg::view_of_text(job.reason.datum)));
}

bool is_sql(const Ended& job) {
  std::optional<Queue> queue = find_queue(job.queue_id);
  return !queue || is_sql_queue(queue->name);
}

template <typename Condition>
std::vector<std::int64_t> ids_of(std::span<const Ended> jobs, Condition condition) {
  std::vector<std::int64_t> ids;
  for (const Ended& job : jobs)
    if (condition(job)) ids.push_back(job.job_id);
  return ids;
}

void run_on(pg::Statement& statement, std::span<const std::int64_t> job_ids) {
  if (!job_ids.empty()) statement.run({pg::int8_array(job_ids)});
}

template <typename Line>
core::Counters counters_at(const pg::IndexWalk& walk) {
  return {.attempt = walk.int4(Line::attempt),
          .tries = walk.int4(Line::tries),
          .crashes = walk.int4(Line::crashes)};
}

// Takes the row with this job_id, if there is one and condition(walk) holds. While others change it
// first it is looked for again; gone is gone.
template <typename Condition>
bool take(pg::FreshSnapshot& snapshot, pg::IndexWalk& walk, std::int64_t job_id,
          Condition condition) {
  while (walk.find(job_id) && condition(walk)) {
    switch (walk.erase(pg::IndexWalk::Waiting::wait)) {
    case pg::Erasure::done:
      return true;
    case pg::Erasure::changed:
      snapshot.renew();
      break;
    case pg::Erasure::held:
    case pg::Erasure::gone:
      return false;
    }
  }
  return false;
}

void delete_jobs(std::span<const std::int64_t> job_ids) {
  if (job_ids.empty()) return;
  pg::FreshSnapshot snapshot;
  pg::Table jobs(JobTable::shape);
  pg::IndexWalk walk(jobs, "job_pkey");
  for (std::int64_t job_id : job_ids)
    take(snapshot, walk, job_id, [](const pg::IndexWalk&) { return true; });
}

// The walk stands at a row of ready. False: somebody else had it.
bool take_ready(pg::IndexWalk& row) {
  std::int64_t queue_id = row.int8(ReadyTable::queue_id);
  core::Tag tag = row.int8(ReadyTable::tag);
  core::Touch& touch = touch_of(queue_id, row.int2(ReadyTable::priority));
  core::Taking taking = in_lanes([&](core::LaneTable& table) { return table.take(touch, tag); });
  bool is_done = row.erase(pg::IndexWalk::Waiting::wait) == pg::Erasure::done;
  taking.end(is_done ? tag : core::kNoTag);
  if (is_done) note_taken(queue_id, 1);
  return is_done;
}

} // namespace

Line put_waiting(std::span<const Waiting> jobs, TimestampTz now) {
  std::vector<Waiting> ready;
  std::vector<Waiting> delayed;
  Line last = Line::ready;
  for (const Waiting& job : jobs) {
    last = job.run_at && *job.run_at > now ? Line::delayed : Line::ready;
    (last == Line::delayed ? delayed : ready).push_back(job);
  }
  put_ready(ready);
  put_delayed(delayed);
  return last;
}

void forget_jobs(std::span<const std::int64_t> job_ids) {
  run_on(delete_failures, job_ids);
  run_on(delete_commands, job_ids);
  delete_jobs(job_ids);
}

void finish(std::span<const Ended> jobs, TimestampTz now) {
  run_on(free_keys, ids_of(jobs, [](const Ended& job) { return job.may_have_key; }));

  KeepTimes keep_times;
  std::vector<Ended> kept;
  std::vector<Ended> forgotten;
  for (const Ended& job : jobs) {
    (keep_times.of(job) == 0 ? forgotten : kept).push_back(job);
    log_death(job);
  }
  put_finished(kept, keep_times, now);
  run_on(delete_failures,
         ids_of(forgotten, [](const Ended& job) { return job.may_have_failures; }));
  run_on(delete_commands, ids_of(forgotten, is_sql));
  delete_jobs(ids_of(forgotten, [](const Ended&) { return true; }));
}

std::vector<TakenLease> take_leases(const core::TokenGroup& group) {
  pg::FreshSnapshot snapshot;
  pg::Table leases(LeaseTable::shape);
  pg::IndexWalk walk(leases, "lease_pkey");
  std::vector<TakenLease> taken;
  taken.reserve(group.job_ids.size());
  std::optional<std::int64_t> held_queue;
  auto is_held = [&](const pg::IndexWalk& lease) {
    if (lease.int4(LeaseTable::attempt) != group.attempt) return false;
    std::int64_t queue_id = lease.int8(LeaseTable::queue_id);
    if (queue_id != held_queue) hold_queue(queue_id);
    held_queue = queue_id;
    return true;
  };
  for (std::int64_t job_id : group.job_ids) {
    if (!take(snapshot, walk, job_id, is_held)) continue;
    taken.push_back({.job_id = job_id,
                     .queue_id = walk.int8(LeaseTable::queue_id),
                     .counters = counters_at<LeaseTable>(walk),
                     .worker = pg::copied(walk.at(LeaseTable::worker)),
                     .claimed_at = walk.at(LeaseTable::claimed_at),
                     .replaced_by = walk.int8_or_null(LeaseTable::replaced_by),
                     .is_keyed = walk.boolean(LeaseTable::keyed)});
  }
  return taken;
}

// One snapshot sees a live job in exactly one line. If the row that it sees there cannot be taken,
// the job has moved, and a newer snapshot sees where to.
std::optional<TakenJob> take_job(std::int64_t job_id, Which which) {
  pg::FreshSnapshot snapshot;
  pg::Table ready(ReadyTable::shape);
  pg::Table delayed(DelayedTable::shape);
  pg::Table leases(LeaseTable::shape);
  pg::IndexWalk in_ready(ready, "ready_job_id_key");
  pg::IndexWalk in_delayed(delayed, "delayed_pkey");
  pg::IndexWalk in_lease(leases, "lease_pkey");
  auto stands_in = [&](pg::IndexWalk& line) { return line.seek({pg::int8(job_id)}); };
  auto is_taken = [](pg::IndexWalk& line, int queue_id) {
    hold_queue(line.int8(queue_id));
    return line.erase(pg::IndexWalk::Waiting::wait) == pg::Erasure::done;
  };

  for (;; snapshot.renew()) {
    if (stands_in(in_ready)) {
      hold_queue(in_ready.int8(ReadyTable::queue_id));
      if (take_ready(in_ready)) {
        return TakenJob{.queue_id = in_ready.int8(ReadyTable::queue_id),
                        .counters = counters_at<ReadyTable>(in_ready)};
      }
    } else if (stands_in(in_delayed)) {
      if (is_taken(in_delayed, DelayedTable::queue_id))
        return TakenJob{.queue_id = in_delayed.int8(DelayedTable::queue_id),
                        .counters = counters_at<DelayedTable>(in_delayed),
                        .run_at = in_delayed.int8_or_null(DelayedTable::run_at)};
    } else if (which == Which::live && stands_in(in_lease)) {
      if (is_taken(in_lease, LeaseTable::queue_id))
        return TakenJob{.queue_id = in_lease.int8(LeaseTable::queue_id),
                        .counters = counters_at<LeaseTable>(in_lease),
                        .was_running = true,
                        .worker = pg::copied(in_lease.at(LeaseTable::worker)),
                        .claimed_at = in_lease.at(LeaseTable::claimed_at)};
    } else {
      return std::nullopt;
    }
  }
}

} // namespace jobq::queue
