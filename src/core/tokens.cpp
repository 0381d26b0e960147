#include "core/tokens.hpp"

#include <algorithm>
#include <tuple>

#include "core/pure.hpp"

namespace jobq::core {

namespace {

std::vector<Token> sorted_tokens(std::span<const std::int64_t> job_ids,
                                 std::span<const std::int32_t> attempts) {
  std::vector<Token> tokens;
  tokens.reserve(job_ids.size());
  for (std::size_t i = 0; i < job_ids.size(); ++i)
    tokens.push_back({.job_id = job_ids[i], .attempt = attempts[i], .position = i});
  std::ranges::sort(tokens, {}, [](const Token& token) {
    return std::tuple(token.attempt, token.job_id, token.position);
  });
  return tokens;
}

} // namespace

std::vector<TokenGroup> group_tokens(std::span<const std::int64_t> job_ids,
                                     std::span<const std::int32_t> attempts) {
  std::vector<TokenGroup> groups;
  for (const Token& token : sorted_tokens(job_ids, attempts)) {
    if (groups.empty() || groups.back().attempt != token.attempt)
      groups.push_back({.attempt = token.attempt, .job_ids = {}, .positions = {}});
    TokenGroup& group = groups.back();
    if (!group.job_ids.empty() && group.job_ids.back() == token.job_id) continue;
    group.job_ids.push_back(token.job_id);
    group.positions.push_back(token.position);
  }
  return groups;
}

} // namespace jobq::core
