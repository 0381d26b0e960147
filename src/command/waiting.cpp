#include "command/waiting.hpp"

#include "pg/statement.hpp"

namespace jobq::command {

namespace {

#define JOBQ_DUE_AT                                                                                \
  "GREATEST(c.due_at, (SELECT pg_catalog.max(f.failed_at) FROM jobq.failure AS f"                  \
  " WHERE f.job_id OPERATOR(pg_catalog.=) c.job_id))"

constinit pg::Statement due("SELECT " JOBQ_DUE_AT ", c.role_name FROM jobq.sql_command AS c"
                            " WHERE c.job_id OPERATOR(pg_catalog.=) $1");

constinit pg::Statement
    waiting("SELECT c.role_oid, " JOBQ_DUE_AT ", pg_catalog.count(*) OVER () FROM jobq.queue AS q"
            " JOIN jobq.ready AS r ON r.queue_id OPERATOR(pg_catalog.=) q.queue_id"
            " JOIN jobq.sql_command AS c ON c.job_id OPERATOR(pg_catalog.=) r.job_id"
            " WHERE pg_catalog.starts_with(q.name, 'sql/') AND NOT q.paused ORDER BY 2 LIMIT 1");

} // namespace

Due due_of(std::int64_t job_id) {
  pg::Rows row = due.run_freely({pg::int8(job_id)});
  if (row.empty()) return {};
  return {.at = row.int8(0, 0), .role_name = std::string(row.text(0, 1))};
}

Waiting look_at_waiting() {
  pg::Rows row = waiting.run_freely({});
  if (row.empty()) return {};
  return {.count = row.int8(0, 2),
          .role = DatumGetObjectId(row.at(0, 0).datum),
          .due_at = row.int8(0, 1)};
}

} // namespace jobq::command
