#include "core/verdict.hpp"

#include "fuzz/fuzz.hpp"

#include <optional>

namespace jobq::core {
namespace {

constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();

// What a verdict is to be, said at one place for all of its askers.
struct Rule {
  std::optional<std::int64_t> replaced_by;
  bool is_death = false;
};

void hold_verdict(const Verdict& verdict, const Rule& rule) {
  Fate fate = rule.replaced_by ? Fate::cancelled : rule.is_death ? Fate::dead : Fate::again;
  EXPECT_EQ(verdict.fate, fate);
  EXPECT_EQ(verdict.reason.empty(), fate == Fate::again);
  if (rule.replaced_by) EXPECT_EQ(verdict.reason, replaced_by(*rule.replaced_by));
}

void hold_crash(const Counters& before) {
  Counters after = after_crash(before);
  EXPECT_EQ(after.attempt, before.attempt);
  EXPECT_EQ(after.tries, before.tries);
  EXPECT_EQ(after.crashes, before.crashes == kLast ? kLast : before.crashes + 1);
}

} // namespace

void hold(Bytes& bytes) {
  const Counters counters = {.attempt = any<std::int32_t>(bytes),
                             .tries = any<std::int32_t>(bytes),
                             .crashes = any<std::int32_t>(bytes)};
  const Limits limits = {.max_attempts = any<std::int32_t>(bytes),
                         .max_crashes = any<std::int32_t>(bytes)};
  const bool may_retry = bytes.ConsumeBool();
  std::optional<std::int64_t> newer;
  if (bytes.ConsumeBool()) newer = any<std::int64_t>(bytes);

  const bool is_tried_out = counters.tries >= limits.max_attempts;
  const bool is_worn = is_tried_out || counters.crashes >= limits.max_crashes;
  const bool is_counted_out = counters.attempt == kLast || counters.tries == kLast;
  hold_verdict(verdict_on(Failed{counters, limits, may_retry, newer}),
               {.replaced_by = newer, .is_death = !may_retry || is_tried_out});
  hold_verdict(verdict_on(Expired{counters, limits, newer}),
               {.replaced_by = newer, .is_death = is_worn});
  hold_verdict(verdict_on_ready(counters, limits),
               {.replaced_by = {}, .is_death = is_worn || is_counted_out});
  hold_crash(counters);
}

} // namespace jobq::core
