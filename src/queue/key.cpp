#include "queue/key.hpp"

#include <string>

#include "pg/error.hpp"
#include "pg/statement.hpp"
#include "queue/bounds.hpp"

namespace jobq::queue {

namespace {

constinit pg::Statement
    insert_key("INSERT INTO jobq.key (queue_id, job_key, job_id) VALUES ($1, $2, $3)"
               " ON CONFLICT (queue_id, job_key) DO NOTHING RETURNING job_id");

constinit pg::Statement
    select_holder("SELECT job_id FROM jobq.key WHERE queue_id OPERATOR(pg_catalog.=) $1"
                  " AND job_key OPERATOR(pg_catalog.=) $2");

constinit pg::Statement
    update_holder("UPDATE jobq.key SET job_id = $2 WHERE job_id OPERATOR(pg_catalog.=) $1");

constinit pg::Statement select_orphan(
    "SELECT FROM jobq.key AS k WHERE k.queue_id OPERATOR(pg_catalog.=) $1"
    " AND k.job_key OPERATOR(pg_catalog.=) $2 AND k.job_id OPERATOR(pg_catalog.=) $3"
    " AND NOT EXISTS (SELECT FROM jobq.ready WHERE job_id OPERATOR(pg_catalog.=) $3)"
    " AND NOT EXISTS (SELECT FROM jobq.delayed WHERE job_id OPERATOR(pg_catalog.=) $3)"
    " AND NOT EXISTS (SELECT FROM jobq.lease WHERE job_id OPERATOR(pg_catalog.=) $3)");

} // namespace

bool take_key(std::int64_t queue_id, std::string_view job_key, std::int64_t job_id) {
  return !insert_key.run({pg::int8(queue_id), pg::text(job_key), pg::int8(job_id)}).empty();
}

std::optional<std::int64_t> key_holder(std::int64_t queue_id, std::string_view job_key) {
  // It may have any size, and is copied from here on.
  if (job_key.size() > kLongestKey) return std::nullopt;
  pg::Rows rows = select_holder.run({pg::int8(queue_id), pg::text(job_key)});
  if (rows.empty()) return std::nullopt;
  return rows.int8(0, 0);
}

void retake_key(std::int64_t queue_id, std::string_view job_key, std::int64_t job_id) {
  while (!take_key(queue_id, job_key, job_id)) {
    std::optional<std::int64_t> holder = key_holder(queue_id, job_key);
    if (holder) complain_of_held_key(job_key, *holder);
  }
}

void pass_key(std::int64_t from, std::int64_t to) {
  update_holder.run({pg::int8(from), pg::int8(to)});
}

void check_holder(std::int64_t queue_id, std::string_view job_key, std::int64_t holder) {
  if (select_orphan.run({pg::int8(queue_id), pg::text(job_key), pg::int8(holder)}).empty()) return;
  pg::raise({.sqlstate = pg::SqlState::data_corrupted,
             .message = "job_key \"" + std::string(job_key) + "\" is held by job " +
                        std::to_string(holder) + ", which stands in no line",
             .hint =
                 "If a restore is under way, wait for its end; otherwise delete the row of that "
                 "key from jobq.key."});
}

void complain_of_held_key(std::string_view job_key, std::int64_t holder) {
  pg::raise({.sqlstate = pg::SqlState::unique_violation,
             .message = "job_key \"" + std::string(job_key) + "\" is held by job " +
                        std::to_string(holder),
             .hint = "Wait for that job's end, cancel it, or use another key."});
}

} // namespace jobq::queue
