// How many jobs stand where. Exactly that means reading all lines; so unless it is asked for, a
// line of more than a megabyte is estimated by the planner's statistics.
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

constinit pg::Statement
    is_small("SELECT pg_catalog.pg_relation_size($1::pg_catalog.text::pg_catalog.regclass)"
             " OPERATOR(pg_catalog.<) 1048576");

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

void add_estimate(CountsById& counts, const char* line, State state, const char* also) {
  for (auto& [queue_id, count] : counts) {
    std::string sql = std::string("SELECT FROM jobq.") + line +
                      " WHERE queue_id OPERATOR(pg_catalog.=) " + std::to_string(queue_id) + also;
    count.of[state] = static_cast<std::int64_t>(pg::estimated_rows(sql.c_str()));
  }
}

bool may_count(const char* relation, bool is_exact) {
  return is_exact || is_small.run_freely({pg::text(relation)}).boolean(0, 0);
}

void count_lines(CountsById& counts, pg::Value queue_id, bool is_exact) {
  if (may_count("jobq.delayed", is_exact))
    add_exact(counts, count_delayed, queue_id);
  else
    add_estimate(counts, "delayed", kDelayedJobs, "");

  if (may_count("jobq.ready", is_exact))
    add_exact(counts, count_ready, queue_id);
  else
    add_estimate(counts, "ready", kReadyJobs, "");

  if (may_count("jobq.lease", is_exact))
    add_exact(counts, count_running, queue_id);
  else
    add_estimate(counts, "lease", kRunningJobs, "");

  if (may_count("jobq.finished", is_exact)) {
    add_exact(counts, count_finished, queue_id);
    return;
  }
  add_estimate(counts, "finished", kCompletedJobs, " AND state OPERATOR(pg_catalog.=) 'completed'");
  add_estimate(counts, "finished", kCancelledJobs, " AND state OPERATOR(pg_catalog.=) 'cancelled'");
  add_estimate(counts, "finished", kDeadJobs, " AND state OPERATOR(pg_catalog.=) 'dead'");
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
