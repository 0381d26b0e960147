#include "queue/job.hpp"

#include <string>

#include "pg/error.hpp"

namespace jobq::queue {

namespace {

constinit pg::Statement
    select_job("SELECT queue_id, priority::integer, group_key, job_key, max_attempts, max_crashes"
               " FROM jobq.job WHERE job_id OPERATOR(pg_catalog.=) $1");

constinit pg::Statement
    update_priority("UPDATE jobq.job SET priority = $2 WHERE job_id OPERATOR(pg_catalog.=) $1");

} // namespace

std::optional<JobFacts> find_job(std::int64_t job_id) {
  pg::Rows rows = select_job.run({pg::int8(job_id)});
  if (rows.empty()) return std::nullopt;
  return JobFacts{.queue_id = rows.int8(0, 0),
                  .priority = rows.int4(0, 1),
                  .group_key = pg::copied(rows.at(0, 2)),
                  .job_key = pg::copied(rows.at(0, 3)),
                  .max_attempts = rows.int4_or_null(0, 4),
                  .max_crashes = rows.int4_or_null(0, 5)};
}

JobFacts require_job(std::int64_t job_id) {
  std::optional<JobFacts> job = find_job(job_id);
  if (job) return *job;
  pg::raise({.sqlstate = pg::SqlState::data_corrupted,
             .message = "job " + std::to_string(job_id) + " stands in a line but not in jobq.job",
             .hint = "If a restore is under way, wait for its end."});
}

void set_priority(std::int64_t job_id, std::int32_t priority) {
  update_priority.run({pg::int8(job_id), pg::int4(priority)});
}

} // namespace jobq::queue
