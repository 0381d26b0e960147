// What a job is: the row written at enqueue, and again only by replace and reschedule.
#pragma once

#include <cstdint>
#include <optional>

#include "core/verdict.hpp"
#include "pg/value.hpp"
#include "queue/queue.hpp"

namespace jobq::queue {

// What the verbs that move a job back need to know of it.
struct JobFacts {
  std::int64_t queue_id = 0;
  std::int32_t priority = 0;
  pg::Value group_key = pg::null(TEXTOID);
  pg::Value job_key = pg::null(TEXTOID);
  std::optional<std::int32_t> max_attempts = std::nullopt;
  std::optional<std::int32_t> max_crashes = std::nullopt;
};

std::optional<JobFacts> find_job(std::int64_t job_id);

// The same for a job that stands in a line; raises if its row is missing (a restore may be under
// way), so that the line stays as it is.
JobFacts require_job(std::int64_t job_id);

[[noreturn]] void complain_of_missing_job(std::int64_t job_id);

void set_priority(std::int64_t job_id, std::int32_t priority);

} // namespace jobq::queue
