#include "schedule/runs.hpp"

#include <algorithm>

#include "pg/clock.hpp"
#include "queue/queue.hpp"

namespace jobq::schedule {

namespace {

constexpr core::Microseconds kKeepOfLostQueue = 30 * core::kDay;
// A clock that falls back by less makes no instant fire again, whatever the queue forgets.
constexpr core::Microseconds kShortestKeep = core::kDay;
constexpr std::uint64_t kPage = 1000;

constinit pg::Statement
    noted("SELECT FROM jobq.schedule_run WHERE schedule_id OPERATOR(pg_catalog.=) $1"
          " AND run_at OPERATOR(pg_catalog.=) $2");

constinit pg::Statement
    insert_run("INSERT INTO jobq.schedule_run (schedule_id, run_at, until, noted_at, prune_at,"
               " job_id, owner_oid, name, state, reason) VALUES ($1, $2, $3, $4, $5, $6, $7, $8,"
               " $9, $10)");

constinit pg::Statement
    insert_missed("INSERT INTO jobq.schedule_run (schedule_id, run_at, until, noted_at, prune_at,"
                  " job_id, owner_oid, name, state, reason) VALUES ($1, $2, $3, $4, $5, NULL, $6,"
                  " $7, 'missed', $8) ON CONFLICT (schedule_id, run_at) DO NOTHING");

constinit pg::Statement
    change_waiting("UPDATE jobq.schedule_run SET state = $3, job_id = $4, reason = $5,"
                   " prune_at = $6"
                   " WHERE schedule_id OPERATOR(pg_catalog.=) $1"
                   " AND run_at OPERATOR(pg_catalog.=) $2"
                   " AND state OPERATOR(pg_catalog.=) 'waiting'");

constinit pg::Statement
    delete_missed("DELETE FROM jobq.schedule_run WHERE schedule_id OPERATOR(pg_catalog.=) $1"
                  " AND run_at OPERATOR(pg_catalog.>) $2"
                  " AND state OPERATOR(pg_catalog.=) 'missed'");

constinit pg::Statement shorten_missed("UPDATE jobq.schedule_run SET until = $2"
                                       " WHERE schedule_id OPERATOR(pg_catalog.=) $1"
                                       " AND until OPERATOR(pg_catalog.>) $2"
                                       " AND state OPERATOR(pg_catalog.=) 'missed'");

// A run is kept as long as its job, which is kept from its end on. Whoever is still at work, or
// keeps its jobs for ever, is looked at again a day later.
constinit pg::Statement prune(
    "WITH due AS MATERIALIZED (SELECT schedule_id, run_at, job_id FROM jobq.schedule_run"
    " WHERE prune_at OPERATOR(pg_catalog.<=) $1 ORDER BY prune_at LIMIT 1000"
    " FOR UPDATE SKIP LOCKED), gone AS (DELETE FROM jobq.schedule_run AS r USING due AS d"
    " WHERE r.schedule_id OPERATOR(pg_catalog.=) d.schedule_id"
    " AND r.run_at OPERATOR(pg_catalog.=) d.run_at AND NOT EXISTS (SELECT FROM jobq.job AS j"
    " WHERE j.job_id OPERATOR(pg_catalog.=) d.job_id)"
    " AND r.state OPERATOR(pg_catalog.<>) 'waiting'), kept AS (UPDATE jobq.schedule_run AS r"
    " SET prune_at = COALESCE((SELECT f.prune_at FROM jobq.finished AS f"
    " WHERE f.job_id OPERATOR(pg_catalog.=) d.job_id AND f.prune_at OPERATOR(pg_catalog.>) $1),"
    " $2) FROM due AS d"
    " WHERE r.schedule_id OPERATOR(pg_catalog.=) d.schedule_id"
    " AND r.run_at OPERATOR(pg_catalog.=) d.run_at AND (EXISTS (SELECT FROM jobq.job AS j"
    " WHERE j.job_id OPERATOR(pg_catalog.=) d.job_id)"
    " OR r.state OPERATOR(pg_catalog.=) 'waiting')) SELECT FROM due");

// Enqueued and skipped ones are kept as the queue keeps what went well, missed ones as what did
// not.
std::optional<TimestampTz> prune_at(const Schedule& schedule, bool is_missed, TimestampTz now) {
  std::optional<queue::Queue> queue = queue::find_queue(schedule.queue);
  core::Microseconds keep = !queue      ? kKeepOfLostQueue
                            : is_missed ? queue->keep_dead
                                        : queue->keep_completed;
  TimestampTz instant = core::later(now, std::max(keep, kShortestKeep), pg::kLastInstant);
  return instant == core::kForever ? std::nullopt : std::optional(instant);
}

void note(const Schedule& schedule, TimestampTz run_at, std::string_view state, pg::Value job_id,
          std::string_view reason, TimestampTz now) {
  insert_run.run({pg::int8(schedule.schedule_id), pg::instant(run_at), pg::null(TIMESTAMPTZOID),
                  pg::instant(now), pg::instant_or_null(prune_at(schedule, false, now)), job_id,
                  pg::oid(schedule.owner), pg::text(schedule.name), pg::text(state),
                  reason.empty() ? pg::null(TEXTOID) : pg::text(reason)});
}

} // namespace

bool is_noted(const Schedule& schedule, TimestampTz run_at) {
  return !noted.run({pg::int8(schedule.schedule_id), pg::instant(run_at)}).empty();
}

void note_enqueued(const Schedule& schedule, TimestampTz run_at, std::int64_t job_id,
                   std::string_view reason, TimestampTz now) {
  note(schedule, run_at, "enqueued", pg::int8(job_id), reason, now);
}

void note_waiting(const Schedule& schedule, TimestampTz run_at, TimestampTz now) {
  note(schedule, run_at, "waiting", pg::null(INT8OID), {}, now);
}

void note_skipped(const Schedule& schedule, TimestampTz run_at, std::string_view reason,
                  TimestampTz now) {
  note(schedule, run_at, "skipped", pg::null(INT8OID), reason, now);
}

void note_missed(const Schedule& schedule, const core::Due& due, std::string_view reason,
                 TimestampTz now) {
  if (!due.long_missed && due.missed.empty()) return;
  pg::Value until_prune = pg::instant_or_null(prune_at(schedule, true, now));
  auto insert = [&](TimestampTz first, pg::Value until) {
    insert_missed.run({pg::int8(schedule.schedule_id), pg::instant(first), until, pg::instant(now),
                       until_prune, pg::oid(schedule.owner), pg::text(schedule.name),
                       pg::text(reason)});
  };
  if (due.long_missed) insert(due.long_missed->first, pg::instant(due.long_missed->last));
  for (TimestampTz run_at : due.missed) insert(run_at, pg::null(TIMESTAMPTZOID));
}

void end_waiting(const Schedule& schedule, std::optional<std::int64_t> job_id,
                 std::string_view reason, TimestampTz now) {
  change_waiting.run({pg::int8(schedule.schedule_id), pg::instant(*schedule.waiting),
                      pg::text(job_id ? "enqueued" : "skipped"), pg::int8_or_null(job_id),
                      reason.empty() ? pg::null(TEXTOID) : pg::text(reason),
                      pg::instant_or_null(prune_at(schedule, false, now))});
}

void forget_missed_after(const Schedule& schedule, TimestampTz instant) {
  delete_missed.run({pg::int8(schedule.schedule_id), pg::instant(instant)});
  shorten_missed.run({pg::int8(schedule.schedule_id), pg::instant(instant)});
}

bool prune_runs(TimestampTz now) {
  pg::Rows rows =
      prune.run({pg::instant(now), pg::instant(std::min(now + core::kDay, pg::kLastInstant))});
  return rows.size() >= kPage;
}

} // namespace jobq::schedule
