// Handing out jobs. A claim takes rows out of ready and puts them into lease; its commit is what
// counts the attempt.
#pragma once

#include <functional>
#include <initializer_list>
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

// Hands out at most claim.max_jobs jobs of the queue, each as a row of claimed_job; returns how
// many.
using HandOut = std::function<void(std::initializer_list<pg::Value> row)>;
HandOut into(pg::ResultSet& set);
std::int32_t claim_from_queue(const HandOut& hand_out, std::string_view queue, const Claim& claim);

} // namespace jobq::queue
