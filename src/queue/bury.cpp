#include "queue/bury.hpp"

#include "pg/statement.hpp"
#include "pg/transaction.hpp"
#include "queue/line.hpp"

namespace jobq::queue {

namespace {

constinit pg::Statement
    next_ready("SELECT job_id FROM jobq.ready WHERE queue_id OPERATOR(pg_catalog.=) $1"
               " ORDER BY priority, tag LIMIT 1000");

bool bury(std::int64_t job_id, std::string_view reason) {
  std::optional<TakenJob> job = take_job(job_id, Which::waiting);
  if (!job) return false;
  const Ended ended[] = {{.job_id = job_id,
                          .queue_id = job->queue_id,
                          .counters = job->counters,
                          .state = kDead,
                          .reason = pg::text(reason)}};
  finish(ended, pg::now());
  return true;
}

} // namespace

std::int64_t bury_ready(std::int64_t queue_id, std::string_view reason) {
  pg::Rows rows = next_ready.run({pg::int8(queue_id)});
  std::int64_t count = 0;
  for (std::uint64_t row = 0; row < rows.size(); ++row) {
    bool is_buried = false;
    std::optional<pg::Error> error =
        pg::in_subtransaction([&] { is_buried = bury(rows.int8(row, 0), reason); });
    if (error && error->sqlstate() == ERRCODE_QUERY_CANCELED) throw *error;
    if (!error && is_buried) ++count;
  }
  return count;
}

} // namespace jobq::queue
