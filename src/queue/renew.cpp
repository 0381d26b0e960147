#include "queue/renew.hpp"

#include <set>
#include <vector>

#include "core/tokens.hpp"
#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/result_set.hpp"
#include "pg/session.hpp"
#include "pg/statement.hpp"
#include "pg/transaction.hpp"
#include "pg/watch.hpp"
#include "queue/bounds.hpp"
#include "queue/executors.hpp"
#include "queue/notes.hpp"
#include "queue/token.hpp"

namespace jobq::queue {

namespace {

constexpr pg::Parameter kLease{2, "lease"};

constinit pg::Statement
    extend("UPDATE jobq.lease SET length = COALESCE($3, length), expires_at ="
           " $4 OPERATOR(pg_catalog.+) pg_catalog.make_interval(secs =>"
           " COALESCE($3, length)::double precision OPERATOR(pg_catalog./) 1e6::double precision)"
           " WHERE job_id OPERATOR(pg_catalog.=) ANY ($1) AND attempt OPERATOR(pg_catalog.=) $2"
           " RETURNING job_id, expires_at");

// What somebody has locked is about to end, or is renewed the next time.
constinit pg::Statement extend_free(
    "WITH free AS MATERIALIZED (SELECT job_id FROM jobq.lease"
    " WHERE job_id OPERATOR(pg_catalog.=) ANY ($1) AND attempt OPERATOR(pg_catalog.=) $2"
    " FOR UPDATE SKIP LOCKED) UPDATE jobq.lease AS l SET expires_at = $3 OPERATOR(pg_catalog.+)"
    " pg_catalog.make_interval(secs => l.length::double precision OPERATOR(pg_catalog./)"
    " 1e6::double precision) FROM free AS f WHERE l.job_id OPERATOR(pg_catalog.=) f.job_id"
    " RETURNING l.job_id, l.expires_at");

constinit pg::Statement
    held_leases("SELECT job_id FROM jobq.lease WHERE job_id OPERATOR(pg_catalog.=) ANY ($1)"
                " AND attempt OPERATOR(pg_catalog.=) $2");

constinit pg::Statement
    cut_short("UPDATE jobq.lease SET expires_at = $3 WHERE job_id OPERATOR(pg_catalog.=) $1"
              " AND attempt OPERATOR(pg_catalog.=) $2 AND expires_at OPERATOR(pg_catalog.>) $3");

pg::Value read_lease(const pg::Call& call) {
  std::optional<core::Interval> lease = call.interval_or_null(kLease);
  if (!lease) return pg::null(INT8OID);
  return pg::int8(check_lease(check_length(*lease, kLease.name)));
}

pg::Rows extend_group(const core::TokenGroup& group, pg::Value lease) {
  pg::look_at_clocks();
  pg::Rows rows = extend.run(
      {pg::int8_array(group.job_ids), pg::int4(group.attempt), lease, pg::instant(pg::now())});
  for (std::uint64_t row = 0; row < rows.size(); ++row)
    note_instant(Chore::rescue, rows.int8(row, 1));
  return rows;
}

Datum renew(pg::Call& call) {
  core::TokenGroup token = read_token(call);
  pg::Rows rows = extend_group(token, read_lease(call));
  if (rows.empty()) return call.returns_null();
  return rows.at(0, 1).datum;
}

Datum renew_batch(pg::Call& call) {
  TokenBatch batch = read_tokens(call);
  pg::Value lease = read_lease(call);
  std::vector<pg::Value> expires_at(batch.size(), pg::null(TIMESTAMPTZOID));
  for (const core::TokenGroup& group : batch.groups) {
    pg::Rows rows = extend_group(group, lease);
    for (std::uint64_t row = 0; row < rows.size(); ++row)
      expires_at[position_of(group, rows.int8(row, 0))] = rows.at(row, 1);
  }
  pg::ResultSet set(call);
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (!expires_at[i].is_null) set.add({pg::int8(batch.job_ids[i]), expires_at[i]});
  return set.done();
}

// Those that are claimed at this moment have no lease that we could see.
std::vector<core::TokenGroup> tokens_in_hand() {
  std::vector<std::int64_t> job_ids;
  std::vector<std::int32_t> attempts;
  for (const Seat& seat : seats_of(pg::my_database())) {
    if (seat.stage != Stage::busy || seat.is_claiming) continue;
    job_ids.push_back(seat.attempt.job_id);
    attempts.push_back(seat.attempt.attempt);
  }
  return core::group_tokens(job_ids, attempts);
}

void stop_lost(const core::TokenGroup& group) {
  pg::Value attempt = pg::int4(group.attempt);
  pg::Rows held = held_leases.run({pg::int8_array(group.job_ids), attempt});
  std::set<std::int64_t> lost(group.job_ids.begin(), group.job_ids.end());
  for (std::uint64_t row = 0; row < held.size(); ++row) lost.erase(held.int8(row, 0));
  for (std::int64_t job_id : lost) note_stop({.job_id = job_id, .attempt = group.attempt});
}

} // namespace

void renew_executions() {
  for (const core::TokenGroup& group : tokens_in_hand()) {
    pg::look_at_clocks();
    pg::Rows rows = extend_free.run(
        {pg::int8_array(group.job_ids), pg::int4(group.attempt), pg::instant(pg::now())});
    for (std::uint64_t row = 0; row < rows.size(); ++row)
      note_instant(Chore::rescue, rows.int8(row, 1));
    bool is_current = !pg::has_one_snapshot(); // else a lease may be newer than what we see
    if (is_current && rows.size() < group.job_ids.size()) stop_lost(group);
  }
}

void expire_now(const Attempt& attempt) {
  TimestampTz now = pg::now();
  cut_short.run({pg::int8(attempt.job_id), pg::int4(attempt.attempt), pg::instant(now)});
  note_instant(Chore::rescue, now);
}

JOBQ_WRITING(jobq_renew, renew)
JOBQ_WRITING(jobq_renew_batch, renew_batch)

} // namespace jobq::queue
