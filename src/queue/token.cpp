#include "queue/token.hpp"

#include <algorithm>
#include <string>

#include "pg/error.hpp"

namespace jobq::queue {

core::TokenGroup read_token(const pg::Call& call) {
  std::int64_t job_id = call.int8({0, "job_id"});
  std::int32_t attempt = call.int4({1, "attempt"});
  return {.attempt = attempt, .job_ids = {job_id}, .positions = {0}};
}

TokenBatch read_tokens(const pg::Call& call) {
  std::vector<std::int64_t> job_ids = call.int8s({0, "job_ids"});
  std::vector<std::int32_t> attempts = call.int4s({1, "attempts"});
  if (job_ids.size() != attempts.size())
    pg::raise({.sqlstate = pg::SqlState::array_mismatch,
               .message = "job_ids and attempts differ in length",
               .detail = "They have " + std::to_string(job_ids.size()) + " and " +
                         std::to_string(attempts.size()) + " elements.",
               .hint = "Pass the attempt of each job, in the same order."});
  std::vector<core::TokenGroup> groups = core::group_tokens(job_ids, attempts);
  return {.job_ids = std::move(job_ids), .groups = std::move(groups)};
}

std::size_t position_of(const core::TokenGroup& group, std::int64_t job_id) {
  auto found = std::ranges::lower_bound(group.job_ids, job_id);
  return group.positions[static_cast<std::size_t>(found - group.job_ids.begin())];
}

} // namespace jobq::queue
