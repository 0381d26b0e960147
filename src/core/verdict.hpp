// What becomes of a job: the one place that knows the limits and the words for a death.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace jobq::core {

struct Limits {
  std::int32_t max_attempts = 0;
  std::int32_t max_crashes = 0;
};

// The counters as they stand in a line: attempt is the token and only grows; tries and crashes
// count towards the limits.
struct Counters {
  std::int32_t attempt = 0;
  std::int32_t tries = 0;
  std::int32_t crashes = 0;
};

// The counters of an attempt whose lease expired.
Counters after_crash(Counters counters);

enum class Fate { again, dead, cancelled };

struct Verdict {
  Fate fate = Fate::again;
  std::string reason; // empty for `again`
};

// An attempt whose worker said that it failed.
struct Failed {
  Counters counters;
  Limits limits;
  bool may_retry = true;
  std::optional<std::int64_t> replaced_by;
};
Verdict verdict_on(const Failed& failed);

// An attempt whose lease expired; counters.crashes counts this one already.
struct Expired {
  Counters counters;
  Limits limits;
  std::optional<std::int64_t> replaced_by;
};
Verdict verdict_on(const Expired& expired);

// A job that stands ready, before it is handed out: `again` means that it may be claimed. Limits
// may have been lowered since its last try, and counters end at 2^31 - 1.
Verdict verdict_on_ready(const Counters& counters, const Limits& limits);

// A job that a newer one with its key replaced while it ran gets no further try.
std::string replaced_by(std::int64_t job_id);

} // namespace jobq::core
