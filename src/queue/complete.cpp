// Completing. The lease decides: who holds it by its token ends the job, and nobody else.
#include <string>
#include <vector>

#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/result_set.hpp"
#include "queue/bounds.hpp"
#include "queue/claim.hpp"
#include "queue/doors.hpp"
#include "queue/line.hpp"
#include "queue/token.hpp"

namespace jobq::queue {

namespace {

// The results of a batch, one for each position; empty if the caller gave none.
using Results = std::vector<pg::Value>;

Results read_results(const pg::Call& call, pg::Parameter parameter, std::size_t size) {
  if (call.is_null(parameter)) return {};
  Datum results = call.value(parameter, JSONBOID).datum;
  std::optional<std::size_t> count = pg::json_array_length(results);
  if (!count)
    pg::raise({.sqlstate = pg::SqlState::invalid_value,
               .message = "results must be a JSON array",
               .hint = "Pass one array with the result of each job, in the order of job_ids."});
  if (*count != size)
    pg::raise({.sqlstate = pg::SqlState::array_mismatch,
               .message = "job_ids and results differ in length",
               .detail = "They have " + std::to_string(size) + " and " + std::to_string(*count) +
                         " elements.",
               .hint = "Pass the result of each job, in the same order; null is one."});
  return pg::json_elements(results);
}

// Ends the jobs that the tokens hold; returns for each position whether it did.
std::vector<bool> complete_all(const TokenBatch& batch, const Results& results) {
  TimestampTz now = pg::now();
  std::vector<bool> held(batch.size(), false);
  for (const core::TokenGroup& group : batch.groups) {
    std::vector<Ended> ended;
    for (const TakenLease& lease : take_leases(group)) {
      std::size_t position = position_of(group, lease.job_id);
      held[position] = true;
      ended.push_back({.job_id = lease.job_id,
                       .queue_id = lease.queue_id,
                       .counters = lease.counters,
                       .state = kCompleted,
                       .result = results.empty() ? pg::null(JSONBOID) : results[position],
                       .worker = lease.worker,
                       .claimed_at = lease.claimed_at,
                       .may_have_key = lease.is_keyed,
                       .may_have_failures = lease.counters.attempt > 1});
    }
    finish(ended, now);
  }
  return held;
}

TokenBatch batch_of_one(const pg::Call& call) {
  core::TokenGroup token = read_token(call);
  return {.job_ids = token.job_ids, .groups = {token}};
}

Datum complete(pg::Call& call) {
  TokenBatch token = batch_of_one(call);
  return call.returns(bool{complete_all(token, {call.value({2, "result"}, JSONBOID)})[0]});
}

Datum complete_batch(pg::Call& call) {
  TokenBatch batch = read_tokens(call);
  std::vector<bool> held = complete_all(batch, read_results(call, {2, "results"}, batch.size()));
  pg::ResultSet set(call);
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (held[i]) set.add({pg::int8(batch.job_ids[i])});
  return set.done();
}

Datum complete_and_claim(pg::Call& call) {
  TokenBatch batch = read_tokens(call);
  std::string_view queue =
      check_queue_name(call.text_or_null({2, "queue"}).value_or(kDefaultQueue));
  Claim claim = read_claim(call, 3);
  complete_all(batch, read_results(call, {6, "results"}, batch.size()));
  pg::ResultSet set(call);
  claim_from_queue(into(set), queue, claim);
  break_promise();
  return set.done();
}

} // namespace

JOBQ_WRITING(jobq_complete, complete)
JOBQ_WRITING(jobq_complete_batch, complete_batch)
JOBQ_WRITING(jobq_complete_and_claim, complete_and_claim)

} // namespace jobq::queue
