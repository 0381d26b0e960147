// Moving a waiting job to another time or priority.
#include "pg/door.hpp"
#include "pg/error.hpp"
#include "queue/bounds.hpp"
#include "queue/job.hpp"
#include "queue/line.hpp"

namespace jobq::queue {

namespace {

Datum reschedule(pg::Call& call) {
  TimestampTz now = pg::now();
  std::int64_t job_id = call.int8({0, "job_id"});
  std::optional<TimestampTz> run_at = call.instant_or_null({1, "run_at"});
  if (run_at) check_instant(*run_at, "run_at");
  std::optional<std::int32_t> priority = call.int4_or_null({2, "priority"});
  if (priority) check_priority(*priority);
  if (!run_at && !priority)
    pg::raise({.sqlstate = pg::SqlState::invalid_value,
               .message = "reschedule needs run_at or priority",
               .hint = "Pass at least one of them; NULL leaves the other as it is."});

  std::optional<JobFacts> job = find_job(job_id);
  if (!job || !share_queue(job->queue_id)) return call.returns(false);
  std::optional<TakenJob> taken = take_job(job_id, Which::waiting);
  if (!taken) return call.returns(false);

  // With the line's row in hand nobody else rewrites the job; another may have until then.
  JobFacts facts = require_job(job_id);
  if (priority) set_priority(job_id, *priority);
  const Waiting waiting[] = {{.job_id = job_id,
                              .queue_id = taken->queue_id,
                              .priority = priority.value_or(facts.priority),
                              .group_key = facts.group_key,
                              .counters = taken->counters,
                              .run_at = run_at ? run_at : taken->run_at}};
  put_waiting(waiting, now);
  return call.returns(true);
}

} // namespace

JOBQ_WRITING(jobq_reschedule, reschedule)

} // namespace jobq::queue
