#include "core/verdict.hpp"

#include <limits>

#include "core/pure.hpp"

namespace jobq::core {

namespace {

constexpr std::int32_t kLastCount = std::numeric_limits<std::int32_t>::max();

Verdict dead(std::string reason) { return {.fate = Fate::dead, .reason = std::move(reason)}; }

Verdict within(const Counters& counters, const Limits& limits) {
  if (counters.crashes >= limits.max_crashes)
    return dead("crashed " + std::to_string(counters.crashes) + " times");
  if (counters.tries >= limits.max_attempts) return dead("attempts exhausted");
  return {};
}

Verdict superseded(std::int64_t job_id) {
  return {.fate = Fate::cancelled, .reason = replaced_by(job_id)};
}

} // namespace

Counters after_crash(Counters counters) {
  if (counters.crashes < kLastCount) ++counters.crashes;
  return counters;
}

std::string replaced_by(std::int64_t job_id) { return "replaced by job " + std::to_string(job_id); }

Verdict verdict_on(const Failed& failed) {
  if (failed.replaced_by) return superseded(*failed.replaced_by);
  if (!failed.may_retry) return dead("failed, not to be retried");
  if (failed.counters.tries >= failed.limits.max_attempts) return dead("attempts exhausted");
  return {};
}

Verdict verdict_on(const Expired& expired) {
  if (expired.replaced_by) return superseded(*expired.replaced_by);
  return within(expired.counters, expired.limits);
}

Verdict verdict_on_ready(const Counters& counters, const Limits& limits) {
  if (counters.attempt == kLastCount || counters.tries == kLastCount)
    return dead("attempt counter exhausted");
  return within(counters, limits);
}

} // namespace jobq::core
