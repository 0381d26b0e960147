// Producers: a job comes to exist, in the caller's transaction.
#include "queue/enqueue.hpp"

#include <span>
#include <string>

#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/statement.hpp"
#include "pg/error.hpp"
#include "pg/result_set.hpp"
#include "pg/sequence.hpp"
#include "pg/table.hpp"
#include "pg/text.hpp"
#include "queue/job.hpp"
#include "queue/key.hpp"
#include "queue/line.hpp"
#include "queue/notes.hpp"
#include "queue/queue.hpp"
#include "queue/tables.hpp"
#include "queue/tag.hpp"

namespace jobq::queue {

namespace {

constexpr pg::Parameter kTask{0, "task"};
constexpr pg::Parameter kPayload{1, "payload"};
constexpr pg::Parameter kPayloads{1, "payloads"};
constexpr pg::Parameter kQueue{2, "queue"};
constexpr pg::Parameter kPriority{3, "priority"};
constexpr pg::Parameter kRunAt{4, "run_at"};
constexpr pg::Parameter kDelay{5, "delay"};
constexpr pg::Parameter kMaxAttempts{6, "max_attempts"};
constexpr pg::Parameter kMaxCrashes{7, "max_crashes"};
constexpr pg::Parameter kGroupKey{8, "group_key"};
constexpr pg::Parameter kJobKey{9, "job_key"};
constexpr pg::Parameter kJobKeyMode{10, "job_key_mode"};
constexpr pg::Parameter kHeaders{11, "headers"};
constexpr pg::Parameter kBatchHeaders{9, "headers"};

constinit pg::Statement rewrite_job(
    "UPDATE jobq.job SET task = $2, payload = $3, headers = $4, priority = $5, group_key = $6,"
    " max_attempts = $7, max_crashes = $8 WHERE job_id OPERATOR(pg_catalog.=) $1");

constinit pg::Statement
    mark_replaced("UPDATE jobq.lease SET replaced_by = $2 WHERE job_id OPERATOR(pg_catalog.=) $1"
                  " AND replaced_by IS NULL RETURNING job_id");

KeyMode check_mode(std::string_view mode) {
  if (mode == "keep") return KeyMode::keep;
  if (mode == "replace") return KeyMode::replace;
  if (mode == "preserve_run_at") return KeyMode::preserve_run_at;
  if (mode == "reject") return KeyMode::reject;
  pg::raise({.sqlstate = pg::SqlState::invalid_value,
             .message = "job_key_mode \"" + std::string(pg::clip(mode, 63)) + "\" is unknown",
             .hint = "Pass keep, replace, preserve_run_at or reject."});
}

std::optional<std::int32_t> read_limit(const pg::Call& call, pg::Parameter parameter) {
  std::optional<std::int32_t> limit = call.int4_or_null(parameter);
  if (limit) check_limit(*limit, parameter.name);
  return limit;
}

// What single and batch have in common.
Order read_order(const pg::Call& call) {
  Order order;
  order.now = pg::now();
  order.task = check_name(call.text(kTask), kTask.name);
  order.queue = check_queue_name(call.text_or_null(kQueue).value_or(kDefaultQueue));
  order.priority = check_priority(call.int4_or_null(kPriority).value_or(kDefaultPriority));
  order.run_at = run_at_of(call, kRunAt, kDelay, order.now);
  order.max_attempts = read_limit(call, kMaxAttempts);
  order.max_crashes = read_limit(call, kMaxCrashes);
  order.group_key = call.value(kGroupKey, TEXTOID);
  if (auto group_key = call.text_or_null(kGroupKey)) check_group_key(*group_key);
  return order;
}

Order read_single(const pg::Call& call) {
  Order order = read_order(call);
  order.payload = call.is_null(kPayload) ? pg::empty_json_object() : call.value(kPayload, JSONBOID);
  order.headers = call.value(kHeaders, JSONBOID);
  order.job_key = call.text_or_null(kJobKey);
  if (order.job_key) check_free_job_key(*order.job_key);
  order.mode = check_mode(call.text_or_null(kJobKeyMode).value_or("keep"));
  return order;
}

bool is_delayed(const Order& order) { return order.run_at && *order.run_at > order.now; }

void insert(const Order& order, const Queue& queue, std::span<const std::int64_t> ids,
            std::span<const pg::Value> payloads) {
  pg::Value task = pg::text(order.task);
  pg::Value job_key = order.job_key ? pg::text(*order.job_key) : pg::null(TEXTOID);
  pg::NewRows jobs;
  pg::NewRows line;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    jobs.add({pg::int8(ids[i]), pg::int8(queue.queue_id), pg::instant(order.now),
              pg::int2(order.priority), pg::int4_or_null(order.max_attempts),
              pg::int4_or_null(order.max_crashes), task, order.group_key, job_key, payloads[i],
              order.headers});
    if (is_delayed(order))
      line.add({pg::int8(ids[i]), pg::int8(queue.queue_id), pg::instant(*order.run_at), pg::int4(0),
                pg::int4(0), pg::int4(0)});
    else
      line.add({pg::int8(queue.queue_id),
                pg::int8(give_tag(queue.queue_id, order.priority, order.group_key)),
                pg::int8(ids[i]), pg::int4(0), pg::int4(0), pg::int4(0), pg::int2(order.priority),
                order.group_key});
  }
  if (is_delayed(order))
    note_instant(Chore::promote, *order.run_at);
  else
    note_ready(queue.queue_id, static_cast<std::int64_t>(ids.size()));
  if (!is_delayed(order) && is_sql_queue(queue.name)) note_instant(Chore::execute, 0);
  pg::Table(JobTable::shape).insert(jobs);
  pg::Table(is_delayed(order) ? DelayedTable::shape : ReadyTable::shape).insert(line);
}

void insert_one(const Order& order, const Queue& queue, std::int64_t job_id) {
  insert(order, queue, std::span(&job_id, 1), std::span(&order.payload, 1));
}

// The job as ordered, in place of the waiting one that holds the key. False: it does not wait.
bool replace_waiting(const Order& order, std::int64_t holder) {
  std::optional<TakenJob> taken = take_job(holder, Which::waiting);
  if (!taken) return false;
  pg::Rows rewritten =
      rewrite_job.run({pg::int8(holder), pg::text(order.task), order.payload, order.headers,
                       pg::int4(order.priority), order.group_key,
                       pg::int4_or_null(order.max_attempts), pg::int4_or_null(order.max_crashes)});
  if (rewritten.empty()) complain_of_missing_job(holder);
  const Waiting waiting[] = {{
      .job_id = holder,
      .queue_id = taken->queue_id,
      .priority = order.priority,
      .group_key = order.group_key,
      .counters = {.attempt = taken->counters.attempt},
      .run_at = order.mode == KeyMode::preserve_run_at ? taken->run_at : order.run_at,
  }};
  put_waiting(waiting, order.now);
  return true;
}

// The running job that holds the key gets no further try, and the new one the key. False: it does
// not run, or was replaced already.
bool replace_running(std::int64_t holder, std::int64_t job_id) {
  if (mark_replaced.run({pg::int8(holder), pg::int8(job_id)}).empty()) return false;
  pass_key(holder, job_id);
  return true;
}

// Each turn of the loop means that another transaction ended the job, or moved it, between two
// looks at it and has committed.
Enqueued enqueue_keyed(const Order& order, const Queue& queue, std::int64_t job_id) {
  for (;;) {
    if (take_key(queue.queue_id, *order.job_key, job_id)) break;
    std::optional<std::int64_t> holder = key_holder(queue.queue_id, *order.job_key);
    if (!holder) continue;
    if (order.mode == KeyMode::keep) return {.job_id = *holder, .is_created = false};
    if (order.mode == KeyMode::reject) complain_of_held_key(*order.job_key, *holder);
    if (replace_waiting(order, *holder)) return {.job_id = *holder, .is_created = false};
    if (replace_running(*holder, job_id)) break;
    check_holder(queue.queue_id, *order.job_key, *holder);
  }
  insert_one(order, queue, job_id);
  return {.job_id = job_id, .is_created = true};
}

Datum enqueue(pg::Call& call) { return call.returns(enqueue_order(read_single(call)).job_id); }

Datum enqueue_unique(pg::Call& call) {
  Enqueued enqueued = enqueue_order(read_single(call));
  pg::ResultSet set(call);
  set.add({pg::int8(enqueued.job_id), pg::boolean(enqueued.is_created)});
  return set.done();
}

Datum enqueue_batch(pg::Call& call) {
  call.require(kPayloads);
  Order order = read_order(call);
  order.payload = call.value(kPayloads, JSONBOID);
  order.headers = call.value(kBatchHeaders, JSONBOID);
  std::optional<std::size_t> count = pg::json_array_length(order.payload.datum);
  if (!count)
    pg::raise({.sqlstate = pg::SqlState::invalid_value,
               .message = "payloads must be a JSON array",
               .hint = "Pass one array with an element for each job, such as '[{\"n\": 1}]'."});

  Queue queue = share_or_make_queue(order.queue);
  std::vector<std::int64_t> ids = pg::next_numbers(kJobNumber, *count);
  if (!ids.empty()) insert(order, queue, ids, pg::json_elements(order.payload.datum));
  pg::ResultSet set(call);
  for (std::int64_t id : ids) set.add({pg::int8(id)});
  return set.done();
}

} // namespace

Enqueued enqueue_order(const Order& order) {
  Queue queue = share_or_make_queue(order.queue);
  std::int64_t job_id = pg::next_number(kJobNumber);
  if (order.job_key) return enqueue_keyed(order, queue, job_id);
  insert_one(order, queue, job_id);
  return {.job_id = job_id, .is_created = true};
}

JOBQ_WRITING(jobq_enqueue, enqueue)
JOBQ_WRITING(jobq_enqueue_unique, enqueue_unique)
JOBQ_WRITING(jobq_enqueue_batch, enqueue_batch)

} // namespace jobq::queue
