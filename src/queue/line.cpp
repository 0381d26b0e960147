#include "queue/line.hpp"

#include <algorithm>

#include "pg/error.hpp"
#include "pg/insertion.hpp"
#include "pg/sequence.hpp"
#include "queue/queue.hpp"

namespace jobq::queue {

namespace {

constinit pg::Insertion into_ready("jobq.ready",
                                   "job_id, queue_id, priority, tag, attempt, tries, crashes,"
                                   " group_key");

constinit pg::Insertion into_delayed("jobq.delayed",
                                     "job_id, queue_id, run_at, attempt, tries, crashes");

constinit pg::Insertion into_finished("jobq.finished",
                                      "job_id, queue_id, attempt, tries, state, reason, result,"
                                      " worker, claimed_at, ended_at, prune_at");

constinit pg::Statement
    free_keys("DELETE FROM jobq.key WHERE job_id OPERATOR(pg_catalog.=) ANY ($1)");

constinit pg::Statement
    delete_failures("DELETE FROM jobq.failure WHERE job_id OPERATOR(pg_catalog.=) ANY ($1)");

constinit pg::Statement
    delete_jobs("DELETE FROM jobq.job WHERE job_id OPERATOR(pg_catalog.=) ANY ($1)");

constinit pg::Statement delete_leases(
    "DELETE FROM jobq.lease"
    " WHERE job_id OPERATOR(pg_catalog.=) ANY ($1) AND attempt OPERATOR(pg_catalog.=) $2"
    " RETURNING job_id, queue_id, tries, crashes, worker, claimed_at, replaced_by, keyed");

// One snapshot sees a live job in exactly one line. If that row is gone by the time it is locked,
// the job has moved: `stood` without a row taken says look again.
#define JOBQ_TAKE_WAITING                                                                          \
  "WITH ready AS (DELETE FROM jobq.ready WHERE job_id OPERATOR(pg_catalog.=) $1"                   \
  " RETURNING queue_id, attempt, tries, crashes)"                                                  \
  ", delayed AS (DELETE FROM jobq.delayed WHERE job_id OPERATOR(pg_catalog.=) $1"                  \
  " RETURNING queue_id, attempt, tries, crashes, run_at)"

#define JOBQ_STOOD(line) "EXISTS (SELECT FROM jobq." line " WHERE job_id OPERATOR(pg_catalog.=) $1)"

#define JOBQ_TAKEN_WAITING                                                                         \
  " SELECT queue_id, attempt, tries, crashes, NULL::timestamp with time zone AS run_at,"           \
  " NULL::pg_catalog.text AS worker, NULL::timestamp with time zone AS claimed_at FROM ready"      \
  " UNION ALL SELECT queue_id, attempt, tries, crashes, run_at, NULL, NULL FROM delayed"

constinit pg::Statement take_waiting(JOBQ_TAKE_WAITING "SELECT t.*, " JOBQ_STOOD(
    "ready") " OR " JOBQ_STOOD("delayed") " FROM (SELECT) AS one LEFT JOIN (" JOBQ_TAKEN_WAITING
                                          ") AS t ON true");

constinit pg::Statement
    take_live(JOBQ_TAKE_WAITING
              ", lease AS (DELETE FROM jobq.lease WHERE job_id OPERATOR(pg_catalog.=) $1"
              " RETURNING queue_id, attempt, tries, crashes, worker, claimed_at)"
              "SELECT t.*, " JOBQ_STOOD("ready") " OR " JOBQ_STOOD("delayed") " OR " JOBQ_STOOD(
                  "lease") " FROM (SELECT) AS one LEFT JOIN (" JOBQ_TAKEN_WAITING
                           " UNION ALL SELECT queue_id, attempt, tries, crashes, NULL, worker, "
                           "claimed_at FROM lease"
                           ") AS t ON true");

void put_ready(std::span<const Waiting> jobs) {
  std::vector<std::int64_t> tags = pg::next_numbers(kJobNumber, jobs.size());
  pg::NewRows rows(into_ready);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Waiting& job = jobs[i];
    rows.add({pg::int8(job.job_id), pg::int8(job.queue_id), pg::int4(job.priority),
              pg::int8(tags[i]), pg::int4(job.counters.attempt), pg::int4(job.counters.tries),
              pg::int4(job.counters.crashes), job.group_key});
  }
  rows.insert();
}

void put_delayed(std::span<const Waiting> jobs) {
  pg::NewRows rows(into_delayed);
  for (const Waiting& job : jobs)
    rows.add({pg::int8(job.job_id), pg::int8(job.queue_id), pg::instant(*job.run_at),
              pg::int4(job.counters.attempt), pg::int4(job.counters.tries),
              pg::int4(job.counters.crashes)});
  rows.insert();
}

core::Microseconds keep_time_of(const Ended& job) {
  std::optional<Queue> queue = find_queue(job.queue_id);
  if (!queue) return core::kForever;
  return job.state == kCompleted ? queue->keep_completed : queue->keep_dead;
}

pg::Value prune_at(const Ended& job, TimestampTz now) {
  TimestampTz instant = core::later(now, keep_time_of(job), pg::kLastInstant);
  return instant == core::kForever ? pg::null(TIMESTAMPTZOID) : pg::instant(instant);
}

void put_finished(std::span<const Ended> jobs, TimestampTz now) {
  pg::NewRows rows(into_finished);
  for (const Ended& job : jobs)
    rows.add({pg::int8(job.job_id), pg::int8(job.queue_id), pg::int4(job.counters.attempt),
              pg::int4(job.counters.tries), pg::text(job.state), job.reason, job.result, job.worker,
              job.claimed_at, pg::instant(now), prune_at(job, now)});
  rows.insert();
}

void log_death(const Ended& job) {
  if (job.state != kDead) return;
  std::optional<Queue> queue = find_queue(job.queue_id);
  pg::log_line("jobq: job " + std::to_string(job.job_id) + " of queue \"" +
               (queue ? queue->name : std::to_string(job.queue_id)) +
               "\" is dead: " + std::string(pg::view_of_text(job.reason.datum)));
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

void forget(std::span<const Ended> jobs) {
  run_on(delete_failures, ids_of(jobs, [](const Ended& job) { return job.may_have_failures; }));
  run_on(delete_jobs, ids_of(jobs, [](const Ended&) { return true; }));
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
  run_on(delete_jobs, job_ids);
}

void finish(std::span<const Ended> jobs, TimestampTz now) {
  run_on(free_keys, ids_of(jobs, [](const Ended& job) { return job.may_have_key; }));

  std::vector<Ended> kept;
  std::vector<Ended> forgotten;
  for (const Ended& job : jobs) {
    (keep_time_of(job) == 0 ? forgotten : kept).push_back(job);
    log_death(job);
  }
  put_finished(kept, now);
  forget(forgotten);
}

pg::Rows take_leases(const core::TokenGroup& group) {
  return delete_leases.run({pg::int8_array(group.job_ids), pg::int4(group.attempt)});
}

TakenLease lease_at(const pg::Rows& rows, std::uint64_t row, std::int32_t attempt) {
  return {
      .job_id = rows.int8(row, 0),
      .queue_id = rows.int8(row, 1),
      .counters = {.attempt = attempt, .tries = rows.int4(row, 2), .crashes = rows.int4(row, 3)},
      .worker = rows.at(row, 4),
      .claimed_at = rows.at(row, 5),
      .replaced_by = rows.int8_or_null(row, 6),
      .is_keyed = rows.boolean(row, 7)};
}

std::optional<TakenJob> take_job(std::int64_t job_id, Which which) {
  pg::Statement& take = which == Which::waiting ? take_waiting : take_live;
  for (;;) {
    pg::Rows rows = take.run({pg::int8(job_id)});
    if (!rows.at(0, 0).is_null)
      return TakenJob{.queue_id = rows.int8(0, 0),
                      .counters = {.attempt = rows.int4(0, 1),
                                   .tries = rows.int4(0, 2),
                                   .crashes = rows.int4(0, 3)},
                      .run_at = rows.int8_or_null(0, 4),
                      .was_running = !rows.at(0, 5).is_null,
                      .worker = pg::copied(rows.at(0, 5)),
                      .claimed_at = rows.at(0, 6)};
    bool has_moved = rows.boolean(0, 7);
    if (!has_moved) return std::nullopt;
  }
}

} // namespace jobq::queue
