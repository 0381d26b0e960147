#include "queue/cancel.hpp"

#include "pg/door.hpp"
#include "pg/text.hpp"
#include "queue/bounds.hpp"
#include "queue/failure.hpp"
#include "queue/key.hpp"
#include "queue/line.hpp"
#include "queue/notes.hpp"
#include "queue/queue.hpp"

namespace jobq::queue {

namespace {

Datum cancel(pg::Call& call) {
  return call.returns(cancel_job(call.int8({0, "job_id"}), read_reason(call, {1, "reason"})));
}

// The holder may end, or hand its key on, between the two looks: then there may be a newer one. A
// holder seen twice that stands in no line is no job.
Datum cancel_key(pg::Call& call) {
  Queue queue = require_queue(check_queue_name(call.text({0, "queue"})));
  std::string_view job_key = call.text({1, "job_key"});
  pg::Value reason = read_reason(call, {2, "reason"});
  std::optional<std::int64_t> seen;
  for (;;) {
    std::optional<std::int64_t> holder = key_holder(queue.queue_id, job_key);
    if (!holder || holder == seen) return call.returns(false);
    if (cancel_job(*holder, reason)) return call.returns(true);
    seen = holder;
  }
}

} // namespace

pg::Value read_reason(const pg::Call& call, pg::Parameter parameter) {
  std::optional<std::string_view> reason = call.text_or_null(parameter);
  return reason ? pg::text(pg::clip(*reason, kLongestText)) : pg::null(TEXTOID);
}

bool cancel_job(std::int64_t job_id, pg::Value reason) {
  std::optional<TakenJob> job = take_job(job_id, Which::live);
  if (!job) return false;
  TimestampTz now = pg::now();
  if (job->was_running) {
    const Failure failure[] = {{.job_id = job_id,
                                .attempt = job->counters.attempt,
                                .kind = kByCancel,
                                .error = reason,
                                .worker = job->worker,
                                .claimed_at = job->claimed_at}};
    record(failure, now);
    note_stop({.job_id = job_id, .attempt = job->counters.attempt});
  }
  const Ended ended[] = {{.job_id = job_id,
                          .queue_id = job->queue_id,
                          .counters = job->counters,
                          .state = kCancelled,
                          .reason = reason,
                          .worker = job->worker,
                          .claimed_at = job->claimed_at}};
  finish(ended, now);
  return true;
}

JOBQ_WRITING(jobq_cancel, cancel)
JOBQ_WRITING(jobq_cancel_key, cancel_key)

} // namespace jobq::queue
