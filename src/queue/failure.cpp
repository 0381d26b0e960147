#include "queue/failure.hpp"

#include "pg/insertion.hpp"

namespace jobq::queue {

namespace {

// An attempt has one failure: one that stands there already must not keep the attempt from ending.
constinit pg::Insertion into_failure("jobq.failure",
                                     "job_id, attempt, kind, error, worker, claimed_at, failed_at",
                                     "ON CONFLICT DO NOTHING");

} // namespace

void record(std::span<const Failure> failures, TimestampTz now) {
  pg::NewRows rows(into_failure);
  for (const Failure& failure : failures)
    rows.add({pg::int8(failure.job_id), pg::int4(failure.attempt), pg::text(failure.kind),
              failure.error, failure.worker, failure.claimed_at, pg::instant(now)});
  rows.insert();
}

} // namespace jobq::queue
