// Dead and cancelled jobs that live again: the same job, its attempt goes on, its counters start
// anew, its failures stay.
#include <vector>

#include "pg/door.hpp"
#include "pg/statement.hpp"
#include "pg/table.hpp"
#include "pg/memory.hpp"
#include "queue/bounds.hpp"
#include "queue/job.hpp"
#include "queue/key.hpp"
#include "queue/line.hpp"
#include "queue/tables.hpp"

namespace jobq::queue {

namespace {

constexpr std::size_t kPage = 1000;

constinit pg::Statement
    take_finished("DELETE FROM jobq.finished WHERE job_id OPERATOR(pg_catalog.=) $1"
                  " AND state OPERATOR(pg_catalog.<>) 'completed' RETURNING attempt");

constinit pg::Statement next_dead(
    "SELECT f.job_id, f.attempt, j.priority::integer, j.group_key, j.job_key"
    " FROM jobq.finished AS f JOIN jobq.job AS j ON j.job_id OPERATOR(pg_catalog.=) f.job_id"
    " WHERE f.queue_id OPERATOR(pg_catalog.=) $1 AND f.state OPERATOR(pg_catalog.=) 'dead'"
    " AND f.job_id OPERATOR(pg_catalog.>) $2"
    " ORDER BY f.job_id LIMIT 1000 FOR UPDATE OF f SKIP LOCKED");

constinit pg::Statement
    delete_finished("DELETE FROM jobq.finished WHERE job_id OPERATOR(pg_catalog.=) ANY ($1)");

Datum retry(pg::Call& call) {
  TimestampTz now = pg::now();
  std::int64_t job_id = call.int8({0, "job_id"});
  std::optional<TimestampTz> run_at = call.instant_or_null({1, "run_at"});
  if (run_at) check_instant(*run_at, "run_at");

  std::optional<JobFacts> job = find_job(job_id);
  if (!job || !share_queue(job->queue_id)) return call.returns(false);
  pg::Rows rows = take_finished.run({pg::int8(job_id)});
  if (rows.empty()) return call.returns(false);
  job = require_job(job_id); // it may have been rewritten until its row in the line was had

  if (!job->job_key.is_null)
    retake_key(job->queue_id, pg::view_of_text(job->job_key.datum), job_id);
  const Waiting waiting[] = {{.job_id = job_id,
                              .queue_id = job->queue_id,
                              .priority = job->priority,
                              .group_key = job->group_key,
                              .counters = {.attempt = rows.int4(0, 0)},
                              .run_at = run_at}};
  put_waiting(waiting, now);
  return call.returns(true);
}

// One page of a queue's dead, from the job after `last` on. Those whose key a live job holds stay.
struct Page {
  std::size_t seen = 0;
  std::size_t retried = 0;
  std::int64_t last = 0;
};

// The table is locked as it will be written before an index of it is (see the sweep).
Page retry_page(const Queue& queue, std::int64_t last, std::size_t most) {
  pg::Table finished(FinishedTable::shape);
  pg::Rows rows = next_dead.run({pg::int8(queue.queue_id), pg::int8(last)}, most);
  Page page = {.seen = rows.size(), .last = last};
  std::vector<Waiting> waiting;
  std::vector<std::int64_t> ids;
  for (std::uint64_t row = 0; row < rows.size(); ++row) {
    std::int64_t job_id = rows.int8(row, 0);
    page.last = job_id;
    if (!rows.at(row, 4).is_null && !take_key(queue.queue_id, rows.text(row, 4), job_id)) continue;
    ids.push_back(job_id);
    waiting.push_back({.job_id = job_id,
                       .queue_id = queue.queue_id,
                       .priority = rows.int4(row, 2),
                       .group_key = rows.at(row, 3),
                       .counters = {.attempt = rows.int4(row, 1)}});
  }
  page.retried = ids.size();
  if (ids.empty()) return page;
  delete_finished.run({pg::int8_array(ids)});
  put_waiting(waiting, pg::now());
  return page;
}

Datum retry_dead(pg::Call& call) {
  Queue queue = share_queue(call.text({0, "queue"}));
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (auto max_jobs = call.int4_or_null({1, "max_jobs"}))
    most = check_max_jobs(*max_jobs, std::numeric_limits<std::int32_t>::max());

  std::int64_t retried = 0;
  std::int64_t last = 0;
  while (retried < most) {
    const pg::TurnMemory memory;
    auto wanted = std::min(kPage, static_cast<std::size_t>(most - retried));
    Page page = retry_page(queue, last, wanted);
    retried += static_cast<std::int64_t>(page.retried);
    last = page.last;
    if (page.seen < wanted) break;
  }
  return call.returns(retried);
}

} // namespace

JOBQ_WRITING(jobq_retry, retry)
JOBQ_WRITING(jobq_retry_dead, retry_dead)

} // namespace jobq::queue
