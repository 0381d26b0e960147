// Renewing leases. A lease that expired but was not swept yet is still its worker's.
#include <vector>

#include "core/tokens.hpp"
#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/result_set.hpp"
#include "pg/statement.hpp"
#include "pg/watch.hpp"
#include "queue/bounds.hpp"
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

} // namespace

JOBQ_WRITING(jobq_renew, renew)
JOBQ_WRITING(jobq_renew_batch, renew_batch)

} // namespace jobq::queue
