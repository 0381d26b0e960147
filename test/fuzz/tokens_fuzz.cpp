#include "core/tokens.hpp"

#include "fuzz/fuzz.hpp"

#include <map>
#include <utility>
#include <vector>

namespace jobq::core {
namespace {

using Name = std::pair<std::int32_t, std::int64_t>; // attempt, job_id

// The tokens in the order of the groups, and where each was named.
std::vector<std::pair<Name, std::size_t>> flat(const std::vector<TokenGroup>& groups) {
  std::vector<std::pair<Name, std::size_t>> tokens;
  for (const TokenGroup& group : groups) {
    EXPECT_FALSE(group.job_ids.empty());
    EXPECT_EQ(group.job_ids.size(), group.positions.size());
    for (std::size_t i = 0; i < group.job_ids.size(); ++i)
      tokens.push_back({{group.attempt, group.job_ids[i]}, group.positions[i]});
  }
  return tokens;
}

} // namespace

void hold(Bytes& bytes) {
  const bool are_few = bytes.ConsumeBool(); // so that tokens are named twice
  std::vector<std::int64_t> job_ids;
  std::vector<std::int32_t> attempts;
  std::map<Name, std::size_t> first;
  while (bytes.remaining_bytes() > 0) {
    job_ids.push_back(are_few ? any<std::int8_t>(bytes) : any<std::int64_t>(bytes));
    attempts.push_back(bytes.ConsumeBool() ? any<std::int8_t>(bytes) : any<std::int32_t>(bytes));
    first.try_emplace({attempts.back(), job_ids.back()}, job_ids.size() - 1);
  }

  const std::vector<TokenGroup> groups = group_tokens(job_ids, attempts);
  EXPECT_EQ(flat(groups), (std::vector<std::pair<Name, std::size_t>>(first.begin(), first.end())));
  for (std::size_t i = 1; i < groups.size(); ++i)
    EXPECT_LT(groups[i - 1].attempt, groups[i].attempt);
}

} // namespace jobq::core
