#include "queue/administer.hpp"

#include <string>

#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/extension.hpp"
#include "pg/lock.hpp"
#include "pg/sequence.hpp"
#include "pg/statement.hpp"
#include "pg/transaction.hpp"
#include "queue/bounds.hpp"
#include "queue/doors.hpp"
#include "queue/group.hpp"
#include "queue/lanes.hpp"
#include "queue/notes.hpp"
#include "queue/queue.hpp"

namespace jobq::queue {

namespace {

constexpr pg::Parameter kQueue{0, "queue"};
constexpr pg::Parameter kLease{1, "lease"};
constexpr pg::Parameter kMaxAttempts{2, "max_attempts"};
constexpr pg::Parameter kMaxCrashes{3, "max_crashes"};
constexpr pg::Parameter kRetryBase{4, "retry_base"};
constexpr pg::Parameter kRetryCap{5, "retry_cap"};
constexpr pg::Parameter kKeepCompleted{6, "keep_completed"};
constexpr pg::Parameter kKeepDead{7, "keep_dead"};
constexpr pg::Parameter kForce{1, "force"};

constinit pg::Statement insert_queue(
    "INSERT INTO jobq.queue (queue_id, name, paused, max_attempts, max_crashes, lease, retry_base,"
    " retry_cap, keep_completed, keep_dead)"
    " VALUES ($1, $2, false, $3, $4, $5, $6, $7, $8, $9)"
    " ON CONFLICT (name) DO NOTHING RETURNING queue_id");

constinit pg::Statement update_queue(
    "UPDATE jobq.queue SET max_attempts = $2, max_crashes = $3, lease = $4, retry_base = $5,"
    " retry_cap = $6, keep_completed = $7, keep_dead = $8"
    " WHERE queue_id OPERATOR(pg_catalog.=) $1");

constinit pg::Statement
    set_paused("UPDATE jobq.queue SET paused = $2 WHERE queue_id OPERATOR(pg_catalog.=) $1");

constinit pg::Statement
    delete_queue("DELETE FROM jobq.queue WHERE queue_id OPERATOR(pg_catalog.=) $1");

constinit pg::Statement
    any_in_lease("SELECT FROM jobq.lease WHERE queue_id OPERATOR(pg_catalog.=) $1 LIMIT 1");
constinit pg::Statement
    any_in_delayed("SELECT FROM jobq.delayed WHERE queue_id OPERATOR(pg_catalog.=) $1 LIMIT 1");
constinit pg::Statement
    any_in_ready("SELECT FROM jobq.ready WHERE queue_id OPERATOR(pg_catalog.=) $1 LIMIT 1");

// The jobs that `gone` names leave without trace.
#define JOBQ_FORGET_GONE(result)                                                                   \
  ", unkeyed AS (DELETE FROM jobq.key AS k USING gone AS g"                                        \
  " WHERE k.job_id OPERATOR(pg_catalog.=) g.job_id)"                                               \
  ", unfailed AS (DELETE FROM jobq.failure AS f USING gone AS g"                                   \
  " WHERE f.job_id OPERATOR(pg_catalog.=) g.job_id)"                                               \
  ", uncommanded AS (DELETE FROM jobq.sql_command AS c USING gone AS g"                            \
  " WHERE c.job_id OPERATOR(pg_catalog.=) g.job_id)"                                               \
  ", forgotten AS (DELETE FROM jobq.job AS j USING gone AS g"                                      \
  " WHERE j.job_id OPERATOR(pg_catalog.=) g.job_id) " result

#define JOBQ_EMPTY(line)                                                                           \
  "WITH gone AS (DELETE FROM jobq." line                                                           \
  " WHERE queue_id OPERATOR(pg_catalog.=) $1 RETURNING job_id)" JOBQ_FORGET_GONE(                  \
      "SELECT FROM gone LIMIT 0")

// Jobs that are just being claimed, cancelled or changed are not waited for.
#define JOBQ_PURGE(line, columns, result)                                                          \
  "WITH picked AS MATERIALIZED (SELECT job_id FROM jobq." line                                     \
  " WHERE queue_id OPERATOR(pg_catalog.=) $1 FOR UPDATE SKIP LOCKED)"                              \
  ", gone AS (DELETE FROM jobq." line " AS l USING picked AS p"                                    \
  " WHERE l.job_id OPERATOR(pg_catalog.=) p.job_id RETURNING " columns                             \
  ")" JOBQ_FORGET_GONE(result)

constinit pg::Statement empty_lease(JOBQ_EMPTY("lease"));
constinit pg::Statement empty_delayed(JOBQ_EMPTY("delayed"));
constinit pg::Statement empty_ready(JOBQ_EMPTY("ready"));
constinit pg::Statement empty_finished(JOBQ_EMPTY("finished"));
constinit pg::Statement purge_delayed(JOBQ_PURGE("delayed", "l.job_id",
                                                 "SELECT pg_catalog.count(*) FROM gone"));
constinit pg::Statement purge_ready(JOBQ_PURGE(
    "ready", "l.job_id, l.priority, l.tag",
    "SELECT pg_catalog.count(*), priority::integer, pg_catalog.max(tag) FROM gone GROUP BY 2"));

pg::Value keep_time(core::Microseconds length) {
  return length == core::kForever ? pg::null(INT8OID) : pg::int8(length);
}

core::Microseconds check_keep_time(const core::Interval& interval, const char* what) {
  core::Length length = core::keep_time_of(interval);
  if (length.flaw == core::Flaw::none) return length.microseconds;
  return check_length({.microseconds = -1}, what);
}

// Settings that the caller gave, over those that are there.
QueueSettings read_settings(const pg::Call& call, QueueSettings settings) {
  if (auto lease = call.interval_or_null(kLease))
    settings.lease = check_lease(check_length(*lease, kLease.name));
  if (auto limit = call.int4_or_null(kMaxAttempts))
    settings.limits.max_attempts = check_limit(*limit, kMaxAttempts.name);
  if (auto limit = call.int4_or_null(kMaxCrashes))
    settings.limits.max_crashes = check_limit(*limit, kMaxCrashes.name);
  if (auto base = call.interval_or_null(kRetryBase))
    settings.back_off.base = check_length(*base, kRetryBase.name);
  if (auto cap = call.interval_or_null(kRetryCap))
    settings.back_off.cap = check_length(*cap, kRetryCap.name);
  if (auto keep = call.interval_or_null(kKeepCompleted))
    settings.keep_completed = check_keep_time(*keep, kKeepCompleted.name);
  if (auto keep = call.interval_or_null(kKeepDead))
    settings.keep_dead = check_keep_time(*keep, kKeepDead.name);
  return settings;
}

QueueSettings settings_of(const Queue& queue) {
  return {.limits = queue.limits,
          .lease = queue.lease,
          .back_off = queue.back_off,
          .keep_completed = queue.keep_completed,
          .keep_dead = queue.keep_dead};
}

Datum create_queue(pg::Call& call) {
  std::string_view name = check_queue_name(call.text(kQueue));
  return call.returns(make_queue(name, read_settings(call, {})));
}

Datum alter_queue(pg::Call& call) {
  // Two that alter at once must not undo each other's settings.
  Queue queue = change_queue(call.text(kQueue));
  QueueSettings settings = read_settings(call, settings_of(queue));
  update_queue.run({pg::int8(queue.queue_id), pg::int4(settings.limits.max_attempts),
                    pg::int4(settings.limits.max_crashes), pg::int8(settings.lease),
                    pg::int8(settings.back_off.base), pg::int8(settings.back_off.cap),
                    keep_time(settings.keep_completed), keep_time(settings.keep_dead)});
  return call.returns_nothing();
}

void pause(const pg::Call& call, bool is_paused) {
  Queue queue = require_queue(call.text(kQueue));
  set_paused.run({pg::int8(queue.queue_id), pg::boolean(is_paused)});
  if (!is_paused) note_queue(queue.queue_id);
  if (!is_paused && is_sql_queue(queue.name)) note_instant(Chore::execute, 0);
}

Datum pause_queue(pg::Call& call) {
  pause(call, true);
  return call.returns_nothing();
}

Datum resume_queue(pg::Call& call) {
  pause(call, false);
  return call.returns_nothing();
}

// Before all ready jobs of a queue are taken, of whatever priority: it may fail when it has taken
// some.
void note_all_ready_taken(std::int64_t queue_id) {
  note_all_taken(queue_id);
  for (std::int32_t priority = kFirstPriority; priority <= kLastPriority; ++priority) {
    core::Touch& touch = touch_of(queue_id, priority);
    in_lanes([&](core::LaneTable& table) { table.take(touch, core::kBeforeAll); });
  }
}

// Their lanes go as well.
void note_dropped(std::int64_t queue_id) {
  for (std::int32_t priority = kFirstPriority; priority <= kLastPriority; ++priority)
    touch_of(queue_id, priority).is_dropped = true;
}

// Claims need not walk over what was there.
std::int64_t purge_ready_jobs(std::int64_t queue_id) {
  note_all_ready_taken(queue_id);
  pg::Rows lanes = purge_ready.run({pg::int8(queue_id)});
  std::int64_t count = 0;
  for (std::uint64_t row = 0; row < lanes.size(); ++row) {
    core::Touch& touch = touch_of(queue_id, lanes.int4(row, 1));
    touch.purged = std::max(touch.purged, lanes.int8(row, 2));
    count += lanes.int8(row, 0);
  }
  return count;
}

Datum purge_queue(pg::Call& call) {
  std::int64_t queue_id = share_queue(call.text(kQueue)).queue_id;
  std::int64_t delayed = purge_delayed.run({pg::int8(queue_id)}).int8(0, 0);
  return call.returns(delayed + purge_ready_jobs(queue_id));
}

// With the queue's lock held alone nothing moves but by sweeps: from lease to delayed, ready and
// finished, and from delayed to ready. So whoever looks at the lines in this order, each with a new
// snapshot, misses no job; and a sweep waits for nobody.
bool has_live_jobs(pg::Value queue_id) {
  return !any_in_lease.run_freely({queue_id}).empty() ||
         !any_in_delayed.run_freely({queue_id}).empty() ||
         !any_in_ready.run_freely({queue_id}).empty();
}

void empty_lines(pg::Value queue_id) {
  empty_lease.run({queue_id});
  empty_delayed.run({queue_id});
  empty_ready.run({queue_id});
  empty_finished.run({queue_id});
}

Datum drop_queue(pg::Call& call) {
  std::string_view name = call.text(kQueue);
  bool is_forced = call.boolean_or_null(kForce).value_or(false);
  if (pg::has_one_snapshot())
    pg::raise(
        {.sqlstate = pg::SqlState::active_transaction,
         .message = "drop_queue needs isolation level READ COMMITTED",
         .hint = "An older snapshot may miss jobs: BEGIN ISOLATION LEVEL READ COMMITTED first."});

  Queue queue = have_queue(name);
  pg::Value queue_id = pg::int8(queue.queue_id);
  if (!is_forced && has_live_jobs(queue_id))
    pg::raise({.sqlstate = pg::SqlState::object_in_use,
               .message = "queue \"" + queue.name + "\" has live jobs",
               .hint =
                   "Let them end or purge the queue first; or pass force => true: then its jobs "
                   "go with it."});
  note_all_ready_taken(queue.queue_id);
  note_dropped(queue.queue_id);
  empty_lines(queue_id);
  forget_weights(queue.queue_id);
  delete_queue.run({queue_id});
  note_queue(queue.queue_id);
  return call.returns_nothing();
}

} // namespace

bool make_queue(std::string_view name, const QueueSettings& settings) {
  if (find_queue(name)) return false;
  if (name == kDefaultQueue) note_queue(kUnmadeQueue);
  std::int64_t queue_id = pg::next_number("queue_number");
  pg::Rows inserted =
      insert_queue.run({pg::int8(queue_id), pg::text(name), pg::int4(settings.limits.max_attempts),
                        pg::int4(settings.limits.max_crashes), pg::int8(settings.lease),
                        pg::int8(settings.back_off.base), pg::int8(settings.back_off.cap),
                        keep_time(settings.keep_completed), keep_time(settings.keep_dead)});
  if (inserted.empty()) return false;
  note_new_queue(queue_id);
  return true;
}

JOBQ_WRITING(jobq_create_queue, create_queue)
JOBQ_WRITING(jobq_alter_queue, alter_queue)
JOBQ_WRITING(jobq_pause_queue, pause_queue)
JOBQ_WRITING(jobq_resume_queue, resume_queue)
JOBQ_WRITING(jobq_purge_queue, purge_queue)
JOBQ_WRITING(jobq_drop_queue, drop_queue)

} // namespace jobq::queue
