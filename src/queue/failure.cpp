#include "queue/failure.hpp"

#include "pg/index_walk.hpp"
#include "pg/snapshot.hpp"
#include "pg/table.hpp"
#include "queue/tables.hpp"

namespace jobq::queue {

// An attempt has one failure, written by who took its lease away. One that stands there already (a
// hand in the tables) must not keep the attempt from ending.
void record(std::span<const Failure> failures, TimestampTz now) {
  if (failures.empty()) return;
  pg::FreshSnapshot snapshot;
  pg::Table table(FailureTable::shape);
  pg::IndexWalk walk(table, "failure_pkey");
  pg::NewRows rows;
  for (const Failure& failure : failures)
    if (!walk.seek({pg::int8(failure.job_id), pg::int4(failure.attempt)}))
      rows.add({pg::int8(failure.job_id), pg::int4(failure.attempt), pg::text(failure.kind),
                failure.claimed_at, pg::instant(now), failure.worker, failure.error});
  table.insert(rows);
}

} // namespace jobq::queue
