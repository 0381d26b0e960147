// The (job_id, attempt) parameters of the verbs that act for an attempt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tokens.hpp"
#include "pg/call.hpp"

namespace jobq::queue {

// Parameters 0 and 1: job_id and attempt.
core::TokenGroup read_token(const pg::Call& call);

// Parameters 0 and 1: job_ids and attempts, of one length.
struct TokenBatch {
  std::vector<std::int64_t> job_ids; // as the caller gave them
  std::vector<core::TokenGroup> groups;

  std::size_t size() const { return job_ids.size(); }
};
TokenBatch read_tokens(const pg::Call& call);

// Where the caller named this job of the group.
std::size_t position_of(const core::TokenGroup& group, std::int64_t job_id);

} // namespace jobq::queue
