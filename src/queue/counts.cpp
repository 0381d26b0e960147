// How many jobs stand where. Exactly that means reading whole tables; so unless it is asked for,
// what an index can count is counted up to a bound, and the rest of large tables is estimated by
// the planner's statistics.
#include <algorithm>
#include <map>
#include <string>

#include "pg/door.hpp"
#include "pg/result_set.hpp"
#include "pg/statement.hpp"
#include "queue/queue.hpp"

namespace jobq::queue {

namespace {

enum State { kDelayedJobs, kReadyJobs, kRunningJobs, kCompletedJobs, kCancelledJobs, kDeadJobs };
constexpr int kStates = 6;

struct Counts {
  std::string queue;
  std::int64_t of[kStates] = {};
};

using CountsById = std::map<std::int64_t, Counts>;

constinit pg::Statement select_queues("SELECT queue_id, name FROM jobq.queue"
                                      " WHERE $1 IS NULL OR name OPERATOR(pg_catalog.=) $1");

// Small, or without statistics to go by.
constinit pg::Statement
    is_to_be_read("SELECT pg_catalog.pg_relation_size(c.oid) OPERATOR(pg_catalog.<) 2097152"
                  " OR NOT EXISTS (SELECT FROM pg_catalog.pg_statistic AS s"
                  " WHERE s.starelid OPERATOR(pg_catalog.=) c.oid)"
                  " FROM pg_catalog.pg_class AS c"
                  " WHERE c.oid OPERATOR(pg_catalog.=) $1::pg_catalog.text::pg_catalog.regclass");

#define JOBQ_COUNT(line, state)                                                                    \
  "SELECT queue_id, pg_catalog.count(*), " state " FROM jobq." line                                \
  " WHERE $1 IS NULL OR queue_id OPERATOR(pg_catalog.=) $1 GROUP BY 1, 3"

constinit pg::Statement count_delayed(JOBQ_COUNT("delayed", "0"));
constinit pg::Statement count_ready(JOBQ_COUNT("ready", "1"));
constinit pg::Statement count_running(JOBQ_COUNT("lease", "2"));
constinit pg::Statement count_finished(
    JOBQ_COUNT("finished", "CASE WHEN state OPERATOR(pg_catalog.=) 'completed' THEN 3"
                           " WHEN state OPERATOR(pg_catalog.=) 'cancelled' THEN 4 ELSE 5 END"));

void add_exact(CountsById& counts, pg::Statement& statement, pg::Value queue_id) {
  pg::Rows rows = statement.run_freely({queue_id});
  for (std::uint64_t row = 0; row < rows.size(); ++row) {
    auto found = counts.find(rows.int8(row, 0));
    if (found != counts.end()) found->second.of[rows.int4(row, 2)] += rows.int8(row, 1);
  }
}

constexpr std::int64_t kMostCounted = 100;

#define JOBQ_COUNT_SOME(condition)                                                                 \
  "SELECT pg_catalog.count(*) FROM (SELECT FROM " condition " LIMIT 101) AS few"

constinit pg::Statement
    some_ready(JOBQ_COUNT_SOME("jobq.ready WHERE queue_id OPERATOR(pg_catalog.=) $1"));
constinit pg::Statement
    some_dead(JOBQ_COUNT_SOME("jobq.finished WHERE queue_id OPERATOR(pg_catalog.=) $1"
                              " AND state OPERATOR(pg_catalog.=) 'dead'"));

// The planner never says that there is nothing: its 1 is as good as none.
std::int64_t estimate(const std::string& from, std::int64_t queue_id, const std::string& also) {
  std::string sql = "SELECT FROM " + from + " WHERE queue_id OPERATOR(pg_catalog.=) " +
                    std::to_string(queue_id) + also;
  auto rows = static_cast<std::int64_t>(pg::estimated_rows(sql.c_str()));
  return rows <= 1 ? 0 : rows;
}

std::int64_t count_or_estimate(pg::Statement& some, const char* from, std::int64_t queue_id,
                               const char* also) {
  std::int64_t counted = some.run({pg::int8(queue_id)}).int8(0, 0);
  if (counted <= kMostCounted) return counted;
  return std::max(counted, estimate(from, queue_id, also));
}

void estimate_ended(CountsById& counts) {
  for (auto& [queue_id, count] : counts) {
    count.of[kCompletedJobs] =
        estimate("jobq.finished", queue_id, " AND state OPERATOR(pg_catalog.=) 'completed'");
    count.of[kCancelledJobs] =
        estimate("jobq.finished", queue_id, " AND state OPERATOR(pg_catalog.=) 'cancelled'");
    count.of[kDeadJobs] = count_or_estimate(some_dead, "jobq.finished", queue_id,
                                            " AND state OPERATOR(pg_catalog.=) 'dead'");
  }
}

bool may_read(const char* table) {
  return is_to_be_read.run_freely({pg::text(table)}).boolean(0, 0);
}

void count_lines(CountsById& counts, pg::Value queue_id, bool is_exact) {
  if (is_exact || may_read("jobq.delayed"))
    add_exact(counts, count_delayed, queue_id);
  else
    for (auto& [id, count] : counts) count.of[kDelayedJobs] = estimate("jobq.delayed", id, "");

  if (is_exact || may_read("jobq.ready"))
    add_exact(counts, count_ready, queue_id);
  else
    for (auto& [id, count] : counts)
      count.of[kReadyJobs] = count_or_estimate(some_ready, "jobq.ready", id, "");

  if (is_exact || may_read("jobq.lease"))
    add_exact(counts, count_running, queue_id);
  else
    for (auto& [id, count] : counts) count.of[kRunningJobs] = estimate("jobq.lease", id, "");

  if (is_exact || may_read("jobq.finished"))
    add_exact(counts, count_finished, queue_id);
  else
    estimate_ended(counts);
}

CountsById find_queues(pg::Value name) {
  CountsById counts;
  pg::Rows rows = select_queues.run_freely({name});
  for (std::uint64_t row = 0; row < rows.size(); ++row)
    counts[rows.int8(row, 0)].queue = std::string(rows.text(row, 1));
  return counts;
}

Datum queue_counts(pg::Call& call) {
  std::optional<std::string_view> name = call.text_or_null({0, "queue"});
  bool is_exact = call.boolean_or_null({1, "exact"}).value_or(false);
  pg::Value queue_id = name ? pg::int8(require_queue(*name).queue_id) : pg::null(INT8OID);
  CountsById counts = find_queues(name ? pg::text(*name) : pg::null(TEXTOID));
  count_lines(counts, queue_id, is_exact);

  pg::ResultSet set(call);
  for (const auto& [id, count] : counts)
    set.add({pg::text(count.queue), pg::int8(count.of[kDelayedJobs]),
             pg::int8(count.of[kReadyJobs]), pg::int8(count.of[kRunningJobs]),
             pg::int8(count.of[kCompletedJobs]), pg::int8(count.of[kCancelledJobs]),
             pg::int8(count.of[kDeadJobs])});
  return set.done();
}

} // namespace

JOBQ_READING(jobq_queue_counts, queue_counts)

} // namespace jobq::queue
