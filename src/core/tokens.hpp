// Fencing tokens, (job_id, attempt), as a batch verb gets them. A batch is worked off in groups
// of one attempt each, so that one statement can check the token of every row that it touches;
// inside a group and between groups the order is total, so two batches never wait for each other
// in a circle: a job has one valid attempt at a time, and an invalid one locks nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jobq::core {

struct Token {
  std::int64_t job_id = 0;
  std::int32_t attempt = 0;
  std::size_t position = 0; // where the caller named it
};

struct TokenGroup {
  std::int32_t attempt = 0;
  std::vector<std::int64_t> job_ids;  // ascending, each once
  std::vector<std::size_t> positions; // of the same jobs
};

// Both spans are of one length. A token named twice counts once, where it was named first.
std::vector<TokenGroup> group_tokens(std::span<const std::int64_t> job_ids,
                                     std::span<const std::int32_t> attempts);

} // namespace jobq::core
