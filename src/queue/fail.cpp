// Failing and snoozing: an attempt ends in an orderly way, and its job goes back or dies.
#include "pg/door.hpp"
#include "pg/text.hpp"
#include "queue/bounds.hpp"
#include "queue/failure.hpp"
#include "queue/job.hpp"
#include "queue/line.hpp"
#include "queue/token.hpp"

namespace jobq::queue {

namespace {

// The attempt's lease and its job, taken out of the line.
struct TakenAttempt {
  TakenLease lease;
  JobFacts job;
};

std::optional<TakenAttempt> take_attempt(const core::TokenGroup& token) {
  std::vector<TakenLease> leases = take_leases(token);
  if (leases.empty()) return std::nullopt;
  return TakenAttempt{.lease = leases.front(), .job = require_job(leases.front().job_id)};
}

void end(const TakenLease& lease, core::Fate fate, std::string_view reason, TimestampTz now) {
  const Ended ended[] = {{.job_id = lease.job_id,
                          .queue_id = lease.queue_id,
                          .counters = lease.counters,
                          .state = fate == core::Fate::dead ? kDead : kCancelled,
                          .reason = pg::text(reason),
                          .worker = lease.worker,
                          .claimed_at = lease.claimed_at}};
  finish(ended, now);
}

Line put_back(const TakenAttempt& attempt, core::Counters counters, TimestampTz run_at,
              TimestampTz now) {
  const Waiting waiting[] = {{.job_id = attempt.lease.job_id,
                              .queue_id = attempt.lease.queue_id,
                              .priority = attempt.job.priority,
                              .group_key = attempt.job.group_key,
                              .counters = counters,
                              .run_at = run_at}};
  return put_waiting(waiting, now);
}

std::optional<TimestampTz> read_retry_at(const pg::Call& call, pg::Parameter retry_in,
                                         TimestampTz now) {
  std::optional<core::Interval> interval = call.interval_or_null(retry_in);
  if (!interval) return std::nullopt;
  return after(now, check_length(*interval, retry_in.name), retry_in.name);
}

Datum fail(pg::Call& call) {
  TimestampTz now = pg::now();
  core::TokenGroup token = read_token(call);
  pg::Value error = pg::text(pg::clip(call.text({2, "error"}), kLongestText));
  std::optional<TimestampTz> retry_at = read_retry_at(call, {3, "retry_in"}, now);
  bool may_retry = call.boolean_or_null({4, "retry"}).value_or(true);

  std::optional<TakenAttempt> attempt = take_attempt(token);
  if (!attempt) return call.returns_null();
  const TakenLease& lease = attempt->lease;
  const Failure failure[] = {{.job_id = lease.job_id,
                              .attempt = lease.counters.attempt,
                              .kind = kError,
                              .error = error,
                              .worker = lease.worker,
                              .claimed_at = lease.claimed_at}};
  record(failure, now);

  Queue queue = require_queue(lease.queue_id);
  core::Limits limits = limits_of(queue, attempt->job.max_attempts, attempt->job.max_crashes);
  core::Verdict verdict = core::verdict_on(core::Failed{.counters = lease.counters,
                                                        .limits = limits,
                                                        .may_retry = may_retry,
                                                        .replaced_by = lease.replaced_by});
  if (verdict.fate != core::Fate::again) {
    end(lease, verdict.fate, verdict.reason, now);
    return call.returns_text(verdict.fate == core::Fate::dead ? kDead : kCancelled);
  }
  core::Counters counters = lease.counters;
  counters.crashes = 0;
  TimestampTz run_at = retry_at ? *retry_at : next_try_at(queue, lease.counters.tries, now);
  Line line = put_back(*attempt, counters, run_at, now);
  return call.returns_text(line == Line::delayed ? "delayed" : "ready");
}

Datum snooze(pg::Call& call) {
  constexpr pg::Parameter kDelay{2, "delay"};
  TimestampTz now = pg::now();
  core::TokenGroup token = read_token(call);
  call.require(kDelay);
  TimestampTz run_at =
      after(now, check_length(*call.interval_or_null(kDelay), kDelay.name), kDelay.name);

  std::optional<TakenAttempt> attempt = take_attempt(token);
  if (!attempt) return call.returns(false);
  const TakenLease& lease = attempt->lease;
  if (lease.replaced_by) {
    end(lease, core::Fate::cancelled, core::replaced_by(*lease.replaced_by), now);
    return call.returns(true);
  }
  core::Counters counters = lease.counters;
  counters.tries -= 1;
  counters.crashes = 0;
  put_back(*attempt, counters, run_at, now);
  return call.returns(true);
}

} // namespace

JOBQ_WRITING(jobq_fail, fail)
JOBQ_WRITING(jobq_snooze, snooze)

} // namespace jobq::queue
