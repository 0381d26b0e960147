// How many jobs stand where. Exactly that means reading whole tables; so unless it is asked for,
// large ones are estimated by a sample of their pages, and what an index can count is counted up
// to a bound. A sample is as new as the call, where the planner's statistics are as old as the last
// ANALYZE.
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

constinit pg::Statement
    select_size("SELECT pg_catalog.pg_relation_size($1::pg_catalog.text::pg_catalog.regclass)");

#define JOBQ_COUNT(table, state)                                                                   \
  "SELECT queue_id, pg_catalog.count(*), " state " FROM " table                                    \
  " WHERE $1 IS NULL OR queue_id OPERATOR(pg_catalog.=) $1 GROUP BY 1, 3"

#define JOBQ_SAMPLE(table) table " TABLESAMPLE pg_catalog.system ($2)"

#define JOBQ_END_STATE                                                                             \
  "CASE WHEN state OPERATOR(pg_catalog.=) 'completed' THEN 3"                                      \
  " WHEN state OPERATOR(pg_catalog.=) 'cancelled' THEN 4 ELSE 5 END"

constinit pg::Statement count_delayed(JOBQ_COUNT("jobq.delayed", "0"));
constinit pg::Statement count_ready(JOBQ_COUNT("jobq.ready", "1"));
constinit pg::Statement count_running(JOBQ_COUNT("jobq.lease", "2"));
constinit pg::Statement count_finished(JOBQ_COUNT("jobq.finished", JOBQ_END_STATE));
constinit pg::Statement sample_delayed(JOBQ_COUNT(JOBQ_SAMPLE("jobq.delayed"), "0"));
constinit pg::Statement sample_ready(JOBQ_COUNT(JOBQ_SAMPLE("jobq.ready"), "1"));
constinit pg::Statement sample_running(JOBQ_COUNT(JOBQ_SAMPLE("jobq.lease"), "2"));
constinit pg::Statement sample_finished(JOBQ_COUNT(JOBQ_SAMPLE("jobq.finished"), JOBQ_END_STATE));

constexpr double kSmall = 2'097'152; // bytes of a table that is read whole
constexpr double kSample = 524'288;  // bytes of the pages that a sample reads, about
constexpr std::int64_t kMostCounted = 100;

#define JOBQ_COUNT_SOME(condition)                                                                 \
  "SELECT pg_catalog.count(*) FROM (SELECT FROM " condition " LIMIT 101) AS few"

constinit pg::Statement
    some_ready(JOBQ_COUNT_SOME("jobq.ready WHERE queue_id OPERATOR(pg_catalog.=) $1"));
constinit pg::Statement
    some_dead(JOBQ_COUNT_SOME("jobq.finished WHERE queue_id OPERATOR(pg_catalog.=) $1"
                              " AND state OPERATOR(pg_catalog.=) 'dead'"));

void add(CountsById& counts, const pg::Rows& rows, double scale) {
  for (std::uint64_t row = 0; row < rows.size(); ++row) {
    auto found = counts.find(rows.int8(row, 0));
    if (found == counts.end()) continue;
    found->second.of[rows.int4(row, 2)] +=
        static_cast<std::int64_t>(static_cast<double>(rows.int8(row, 1)) * scale);
  }
}

// One table, whole or by a sample. True: by a sample.
struct Table {
  const char* name;
  pg::Statement& count;
  pg::Statement& sample;
};

bool count_table(CountsById& counts, const Table& table, pg::Value queue_id, bool is_exact) {
  auto size = static_cast<double>(select_size.run_freely({pg::text(table.name)}).int8(0, 0));
  if (is_exact || size <= kSmall) {
    add(counts, table.count.run_freely({queue_id}), 1);
    return false;
  }
  double share = kSample / size;
  add(counts, table.sample.run_freely({queue_id, pg::float4(100 * share)}), 1 / share);
  return true;
}

// A sample may miss what is rare.
void count_few(CountsById& counts, pg::Statement& some, State state) {
  for (auto& [queue_id, count] : counts) {
    std::int64_t counted = some.run({pg::int8(queue_id)}).int8(0, 0);
    count.of[state] = counted <= kMostCounted ? counted : std::max(counted, count.of[state]);
  }
}

void count_lines(CountsById& counts, pg::Value queue_id, bool is_exact) {
  const Table delayed = {"jobq.delayed", count_delayed, sample_delayed};
  const Table ready = {"jobq.ready", count_ready, sample_ready};
  const Table running = {"jobq.lease", count_running, sample_running};
  const Table finished = {"jobq.finished", count_finished, sample_finished};
  count_table(counts, delayed, queue_id, is_exact);
  if (count_table(counts, ready, queue_id, is_exact)) count_few(counts, some_ready, kReadyJobs);
  count_table(counts, running, queue_id, is_exact);
  if (count_table(counts, finished, queue_id, is_exact)) count_few(counts, some_dead, kDeadJobs);
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
