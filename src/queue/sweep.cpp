// Each row is taken by one sweep, and passed over by the others while that one has it.
#include "queue/sweep.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "pg/door.hpp"
#include "pg/statement.hpp"
#include "pg/table.hpp"
#include "pg/error.hpp"
#include "pg/memory.hpp"
#include "pg/result_set.hpp"
#include "pg/transaction.hpp"
#include "pg/watch.hpp"
#include "queue/bounds.hpp"
#include "queue/failure.hpp"
#include "queue/line.hpp"
#include "queue/notes.hpp"
#include "queue/queue.hpp"
#include "queue/renew.hpp"
#include "queue/tables.hpp"
#include "settings.hpp"

namespace jobq::queue {

namespace {

constexpr std::int32_t kMostJobs = 1'000'000;

// Index entries of rows that are gone stay for as long as an old snapshot may see them: no walk
// begins below the course's `from`, the last parameters of each statement here.

// $1: until when; $2: jobs that have failed in this sweep. A row whose job is not there is left: a
// restore may be under way.
constinit pg::Statement next_due(
    "SELECT d.job_id, d.queue_id, d.attempt, d.tries, d.crashes, j.priority::integer, j.group_key"
    " FROM jobq.delayed AS d JOIN jobq.job AS j ON j.job_id OPERATOR(pg_catalog.=) d.job_id"
    " WHERE d.run_at OPERATOR(pg_catalog.<=) $1 AND d.job_id OPERATOR(pg_catalog.<>) ALL ($2)"
    " AND ROW(d.run_at, d.job_id) OPERATOR(pg_catalog.>=) ROW($3, $4)"
    " ORDER BY d.run_at, d.job_id LIMIT 1000 FOR UPDATE OF d SKIP LOCKED");

constinit pg::Statement
    first_due("SELECT d.run_at FROM jobq.delayed AS d"
              " JOIN jobq.job AS j ON j.job_id OPERATOR(pg_catalog.=) d.job_id"
              " WHERE ROW(d.run_at, d.job_id) OPERATOR(pg_catalog.>=) ROW($2, $3)"
              " AND d.job_id OPERATOR(pg_catalog.<>) ALL ($1)"
              " ORDER BY d.run_at, d.job_id LIMIT 1");

constinit pg::Statement
    lowest_delayed("SELECT run_at, job_id FROM jobq.delayed"
                   " WHERE ROW(run_at, job_id) OPERATOR(pg_catalog.>=) ROW($1, $2)"
                   " ORDER BY run_at, job_id LIMIT 1");

constinit pg::Statement
    delete_delayed("DELETE FROM jobq.delayed WHERE job_id OPERATOR(pg_catalog.=) ANY ($1)");

// Leases claimed before the last disturbance are left alone until it is $4 microseconds past, or a
// third of their length if that is more; it is $5 past now. They bear an instant before $3, or one
// of the future: the clock fell back while the server was down.
constinit pg::Statement next_expired(
    "SELECT l.job_id, l.queue_id, l.attempt, l.tries, l.crashes, j.priority::integer, j.group_key,"
    " l.worker, l.claimed_at, l.replaced_by, j.max_attempts, j.max_crashes"
    " FROM jobq.lease AS l JOIN jobq.job AS j ON j.job_id OPERATOR(pg_catalog.=) l.job_id"
    " JOIN jobq.queue AS q ON q.queue_id OPERATOR(pg_catalog.=) l.queue_id"
    " WHERE l.expires_at OPERATOR(pg_catalog.<=) $1 AND l.job_id OPERATOR(pg_catalog.<>) ALL ($2)"
    " AND (l.claimed_at OPERATOR(pg_catalog.>=) $3 AND l.claimed_at OPERATOR(pg_catalog.<=) $1"
    " OR $5 OPERATOR(pg_catalog.>=) GREATEST($4, l.length OPERATOR(pg_catalog./) 3))"
    " AND l.expires_at OPERATOR(pg_catalog.>=) $6"
    " ORDER BY l.expires_at LIMIT 1000 FOR UPDATE OF l SKIP LOCKED");

constinit pg::Statement first_expiry(
    "SELECT l.expires_at FROM jobq.lease AS l"
    " JOIN jobq.job AS j ON j.job_id OPERATOR(pg_catalog.=) l.job_id"
    " JOIN jobq.queue AS q ON q.queue_id OPERATOR(pg_catalog.=) l.queue_id"
    " WHERE l.expires_at OPERATOR(pg_catalog.>=) $2 AND l.job_id OPERATOR(pg_catalog.<>) ALL ($1)"
    " ORDER BY l.expires_at LIMIT 1");

constinit pg::Statement lowest_lease("SELECT expires_at, NULL::bigint FROM jobq.lease"
                                     " WHERE expires_at OPERATOR(pg_catalog.>=) $1"
                                     " ORDER BY expires_at LIMIT 1");

constinit pg::Statement
    delete_leases("DELETE FROM jobq.lease WHERE job_id OPERATOR(pg_catalog.=) ANY ($1)");

constinit pg::Statement
    next_to_prune("SELECT f.job_id FROM jobq.finished AS f"
                  " JOIN jobq.job AS j ON j.job_id OPERATOR(pg_catalog.=) f.job_id"
                  " WHERE f.prune_at OPERATOR(pg_catalog.<=) $1"
                  " AND f.job_id OPERATOR(pg_catalog.<>) ALL ($2)"
                  " AND f.prune_at OPERATOR(pg_catalog.>=) $3"
                  " ORDER BY f.prune_at LIMIT 1000 FOR UPDATE OF f SKIP LOCKED");

constinit pg::Statement first_to_prune(
    "SELECT f.prune_at FROM jobq.finished AS f"
    " JOIN jobq.job AS j ON j.job_id OPERATOR(pg_catalog.=) f.job_id"
    " WHERE f.prune_at OPERATOR(pg_catalog.>=) $2 AND f.job_id OPERATOR(pg_catalog.<>) ALL ($1)"
    " ORDER BY f.prune_at LIMIT 1");

constinit pg::Statement lowest_finished("SELECT prune_at, NULL::bigint FROM jobq.finished"
                                        " WHERE prune_at OPERATOR(pg_catalog.>=) $1"
                                        " ORDER BY prune_at LIMIT 1");

constinit pg::Statement
    delete_finished("DELETE FROM jobq.finished WHERE job_id OPERATOR(pg_catalog.=) ANY ($1)");

using Rows = std::span<const std::uint64_t>;

// What is looked for: the first rows from a place on that are due and that have not failed.
struct Wanted {
  TimestampTz now;
  core::Place from;
  pg::Value failed;
  std::size_t most;
};

// One kind of work: how to find the next rows, locked, what to do with some of them, the instant of
// the first row that is left for it, and the place of the first one at all.
struct Task {
  const char* verb;
  const pg::Shape& line;
  pg::Rows (*find)(const Wanted& wanted);
  Swept (*work)(const pg::Rows& rows, Rows chosen, TimestampTz now);
  pg::Statement& first;
  pg::Statement& lowest;
};

std::vector<std::int64_t> ids_of(const pg::Rows& rows, Rows chosen) {
  std::vector<std::int64_t> ids;
  ids.reserve(chosen.size());
  for (std::uint64_t row : chosen) ids.push_back(rows.int8(row, 0));
  return ids;
}

core::Counters counters_at(const pg::Rows& rows, std::uint64_t row) {
  return {.attempt = rows.int4(row, 2), .tries = rows.int4(row, 3), .crashes = rows.int4(row, 4)};
}

Waiting waiting_at(const pg::Rows& rows, std::uint64_t row) {
  return {.job_id = rows.int8(row, 0),
          .queue_id = rows.int8(row, 1),
          .priority = rows.int4(row, 5),
          .group_key = rows.at(row, 6),
          .counters = counters_at(rows, row)};
}

pg::Rows find_due(const Wanted& wanted) {
  return next_due.run({pg::instant(wanted.now), wanted.failed, pg::instant(wanted.from.instant),
                       pg::int8(wanted.from.job_id)},
                      wanted.most);
}

Swept promote(const pg::Rows& rows, Rows chosen, TimestampTz now) {
  delete_delayed.run({pg::int8_array(ids_of(rows, chosen))});
  std::vector<Waiting> waiting;
  for (std::uint64_t row : chosen) waiting.push_back(waiting_at(rows, row));
  put_waiting(waiting, now);
  return {.promoted = static_cast<std::int64_t>(chosen.size())};
}

pg::Rows find_expired(const Wanted& wanted) {
  core::Watch watch = pg::look_at_clocks();
  return next_expired.run({pg::instant(wanted.now), wanted.failed, pg::instant(watch.before),
                           pg::int8(settings::grace()),
                           pg::int8(pg::monotonic_now() - watch.disturbed_at),
                           pg::instant(wanted.from.instant)},
                          wanted.most);
}

Failure expiry_at(const pg::Rows& rows, std::uint64_t row) {
  return {.job_id = rows.int8(row, 0),
          .attempt = rows.int4(row, 2),
          .kind = kExpired,
          .error = pg::text("lease expired"),
          .worker = rows.at(row, 7),
          .claimed_at = rows.at(row, 8)};
}

Ended ended_at(const pg::Rows& rows, std::uint64_t row, const core::Verdict& verdict) {
  return {.job_id = rows.int8(row, 0),
          .queue_id = rows.int8(row, 1),
          .counters = counters_at(rows, row),
          .state = verdict.fate == core::Fate::dead ? kDead : kCancelled,
          .reason = pg::text(verdict.reason),
          .worker = rows.at(row, 7),
          .claimed_at = rows.at(row, 8)};
}

// The job's next try, one crash later.
Waiting retry_at(const pg::Rows& rows, std::uint64_t row, const Queue& queue, TimestampTz now) {
  Waiting waiting = waiting_at(rows, row);
  waiting.counters = core::after_crash(waiting.counters);
  waiting.run_at = next_try_at(queue, waiting.counters.tries, now);
  return waiting;
}

Swept rescue(const pg::Rows& rows, Rows chosen, TimestampTz now) {
  std::vector<Failure> failures;
  std::vector<Waiting> waiting;
  std::vector<Ended> ended;
  Swept swept;
  for (std::uint64_t row : chosen) {
    Queue queue = require_queue(rows.int8(row, 1));
    Waiting retry = retry_at(rows, row, queue, now);
    core::Limits limits = limits_of(queue, rows.int4_or_null(row, 10), rows.int4_or_null(row, 11));
    core::Verdict verdict = core::verdict_on(core::Expired{
        .counters = retry.counters, .limits = limits, .replaced_by = rows.int8_or_null(row, 9)});
    failures.push_back(expiry_at(rows, row));
    if (verdict.fate == core::Fate::again)
      waiting.push_back(retry);
    else
      ended.push_back(ended_at(rows, row, verdict));
    swept.retried += verdict.fate == core::Fate::again ? 1 : 0;
    swept.died += verdict.fate == core::Fate::dead ? 1 : 0;
  }
  delete_leases.run({pg::int8_array(ids_of(rows, chosen))});
  record(failures, now);
  put_waiting(waiting, now);
  finish(ended, now);
  return swept;
}

pg::Rows find_to_prune(const Wanted& wanted) {
  return next_to_prune.run(
      {pg::instant(wanted.now), wanted.failed, pg::instant(wanted.from.instant)}, wanted.most);
}

Swept prune(const pg::Rows& rows, Rows chosen, TimestampTz) {
  std::vector<std::int64_t> ids = ids_of(rows, chosen);
  delete_finished.run({pg::int8_array(ids)});
  forget_jobs(ids);
  return {};
}

// In the order of Chore.
constexpr std::array<Task, kSweptCount> kTasks = {{{.verb = "promote",
                                                    .line = DelayedTable::shape,
                                                    .find = find_due,
                                                    .work = promote,
                                                    .first = first_due,
                                                    .lowest = lowest_delayed},
                                                   {.verb = "rescue",
                                                    .line = LeaseTable::shape,
                                                    .find = find_expired,
                                                    .work = rescue,
                                                    .first = first_expiry,
                                                    .lowest = lowest_lease},
                                                   {.verb = "prune",
                                                    .line = FinishedTable::shape,
                                                    .find = find_to_prune,
                                                    .work = prune,
                                                    .first = first_to_prune,
                                                    .lowest = lowest_finished}}};

const Task& task_of(Chore chore) { return kTasks[static_cast<std::size_t>(chore)]; }

// All rows of a page at once; if one of them raises, each by itself, so that a bad row stops
// nobody else.
void work_page(const Task& task, const pg::Rows& rows, Page& page) {
  std::vector<std::uint64_t> all(rows.size());
  for (std::uint64_t row = 0; row < rows.size(); ++row) all[row] = row;

  page.found = static_cast<std::int64_t>(rows.size());
  std::optional<pg::Error> error =
      pg::in_subtransaction([&] { page.swept = task.work(rows, all, page.at); });
  if (!error) return;
  if (!pg::is_about_rows(*error)) throw *error;

  page.swept = {};
  for (std::uint64_t row : all) {
    Swept one;
    error = pg::in_subtransaction([&] { one = task.work(rows, Rows(&row, 1), page.at); });
    if (!error) {
      page.swept.add(one);
      continue;
    }
    if (!pg::is_about_rows(*error)) throw *error;
    page.bad.push_back({.job_id = rows.int8(row, 0), .error = error->message()});
  }
}

void complain(Chore chore, const BadJob& bad) {
  pg::warn({.sqlstate = pg::SqlState::data_corrupted,
            .message = "sweep could not " + std::string(verb_of(chore)) + " job " +
                       std::to_string(bad.job_id) + ": " + bad.error,
            .detail = "The job stays where it is; the sweep goes on with the others."});
}

core::Place lowest_from(const Task& task, core::Place from) {
  pg::Rows rows = task.lowest.run({pg::instant(from.instant), pg::int8(from.job_id)});
  if (rows.empty()) return core::kEnd;
  core::Place lowest = {.instant = rows.int8(0, 0)};
  if (auto job_id = rows.int8_or_null(0, 1)) lowest.job_id = *job_id;
  return lowest;
}

// In one snapshot for all, rows may be seen that were gone long before the mark was read.
core::Place start_of(Chore chore) {
  if (pg::has_one_snapshot()) return core::kBeginning;
  return std::min(low_mark(chore), first_noted(chore));
}

// Bad jobs count for nothing.
Swept work_off(Chore chore, std::int64_t most) {
  Swept swept;
  Course course = {.from = start_of(chore), .passed = {}};
  for (std::int64_t left = most; left > 0;) {
    const pg::TurnMemory memory;
    Page page = sweep_page(chore, left, course);
    for (const BadJob& bad : page.bad) complain(chore, bad);
    swept.add(page.swept);
    left -= page.found - static_cast<std::int64_t>(page.bad.size());
    if (page.is_last) break;
  }
  return swept;
}

Datum sweep(pg::Call& call) {
  std::int32_t max_jobs = 1000;
  if (auto given = call.int4_or_null({0, "max_jobs"})) max_jobs = check_max_jobs(*given, kMostJobs);
  Swept swept;
  for (Chore chore : {Chore::promote, Chore::rescue, Chore::prune})
    swept.add(work_off(chore, max_jobs));
  pg::ResultSet set(call);
  set.add({pg::int8(swept.promoted), pg::int8(swept.retried), pg::int8(swept.died)});
  return set.done();
}

} // namespace

const char* verb_of(Chore chore) { return task_of(chore).verb; }

// Tables are locked as they will be written before an index of theirs is: the other way round
// REINDEX could wait for us and we for it.
Page sweep_page(Chore chore, std::int64_t most, Course& course) {
  const Task& task = task_of(chore);
  pg::Table line(task.line);
  pg::Table jobs(JobTable::shape);
  Page page;
  page.at = pg::now();
  if (course.from.instant > page.at) return page;
  if (chore == Chore::rescue) renew_executions();
  course.from = lowest_from(task, course.from);
  if (course.from.instant > page.at) return page;
  auto most_rows = static_cast<std::size_t>(std::min(kPage, most));
  pg::Rows rows = task.find({.now = page.at,
                             .from = course.from,
                             .failed = pg::int8_array(course.passed),
                             .most = most_rows});
  if (rows.empty()) return page;
  work_page(task, rows, page);
  page.is_last = rows.size() < most_rows;
  for (const BadJob& bad : page.bad) course.passed.push_back(bad.job_id);
  course.from = lowest_from(task, course.from);
  return page;
}

Rest rest_after(Chore chore, const Page& page, const Course& course) {
  auto first_from = [&](core::Place from) {
    pg::Rows rows = task_of(chore).first.run(
        {pg::int8_array(course.passed), pg::instant(from.instant), pg::int8(from.job_id)});
    return rows.empty() ? core::kForever : rows.int8(0, 0);
  };
  core::Microseconds first = first_from(course.from);
  if (first > page.at) return {.next = first};
  return {.is_any_due = true, .next = first_from({.instant = page.at + 1})};
}

JOBQ_WRITING(jobq_sweep, sweep)

} // namespace jobq::queue
