#include "queue/job.hpp"

#include <string>

#include "pg/error.hpp"
#include "pg/index_walk.hpp"
#include "pg/snapshot.hpp"
#include "pg/statement.hpp"
#include "pg/table.hpp"
#include "queue/tables.hpp"

namespace jobq::queue {

namespace {

constinit pg::Statement
    update_priority("UPDATE jobq.job SET priority = $2 WHERE job_id OPERATOR(pg_catalog.=) $1");

} // namespace

std::optional<JobFacts> find_job(std::int64_t job_id) {
  pg::FreshSnapshot snapshot;
  pg::Table jobs(JobTable::shape);
  pg::IndexWalk job(jobs, "job_pkey");
  if (!job.seek({pg::int8(job_id)})) return std::nullopt;
  return JobFacts{.queue_id = job.int8(JobTable::queue_id),
                  .priority = DatumGetInt16(job.at(JobTable::priority).datum),
                  .group_key = pg::copied(job.at(JobTable::group_key)),
                  .job_key = pg::copied(job.at(JobTable::job_key)),
                  .max_attempts = job.int4_or_null(JobTable::max_attempts),
                  .max_crashes = job.int4_or_null(JobTable::max_crashes)};
}

JobFacts require_job(std::int64_t job_id) {
  std::optional<JobFacts> job = find_job(job_id);
  if (!job) complain_of_missing_job(job_id);
  return *job;
}

void complain_of_missing_job(std::int64_t job_id) {
  pg::raise({.sqlstate = pg::SqlState::data_corrupted,
             .message = "job " + std::to_string(job_id) + " stands in a line but not in jobq.job",
             .hint = "If a restore is under way, wait for its end."});
}

void set_priority(std::int64_t job_id, std::int32_t priority) {
  update_priority.run({pg::int8(job_id), pg::int4(priority)});
}

} // namespace jobq::queue
