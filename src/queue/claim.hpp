// Handing out jobs. A claim takes rows out of ready and puts them into lease; its commit is what
// counts the attempt.
#pragma once

#include <string_view>

#include "pg/call.hpp"
#include "pg/result_set.hpp"

namespace jobq::queue {

struct Claim {
  std::int32_t max_jobs = 1;
  pg::Value worker = pg::null(TEXTOID);
  std::optional<core::Microseconds> lease = std::nullopt; // nothing: the queue's
};

// The parameters that all claiming verbs have, from the position of max_jobs on.
Claim read_claim(const pg::Call& call, int position);

// Adds at most claim.max_jobs jobs of the queue to the set; returns how many.
std::int32_t claim_from_queue(pg::ResultSet& set, std::string_view queue, const Claim& claim);

} // namespace jobq::queue
