// Attempts that did not complete: one row each, with its reason.
#pragma once

#include <span>
#include <string_view>

#include "pg/clock.hpp"
#include "queue/line.hpp"

namespace jobq::queue {

struct Failure {
  std::int64_t job_id = 0;
  std::int32_t attempt = 0;
  std::string_view kind; // error, expired or cancelled
  pg::Value error = pg::null(TEXTOID);
  pg::Value worker = pg::null(TEXTOID);
  pg::Value claimed_at = pg::null(TIMESTAMPTZOID);
};

inline constexpr std::string_view kError = "error";
inline constexpr std::string_view kExpired = "expired";
inline constexpr std::string_view kByCancel = "cancelled";

void record(std::span<const Failure> failures, TimestampTz now);

} // namespace jobq::queue
