// Making a job, for producers inside as for those outside.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pg/value.hpp"
#include "queue/bounds.hpp"

namespace jobq::queue {

enum class KeyMode { keep, replace, preserve_run_at, reject };

// What a job is to be; all jobs of a batch share it but for the payload.
struct Order {
  std::string_view task;
  pg::Value payload; // of a batch: the array
  std::string_view queue;
  std::int32_t priority = kDefaultPriority;
  std::optional<TimestampTz> run_at = std::nullopt;
  std::optional<std::int32_t> max_attempts = std::nullopt;
  std::optional<std::int32_t> max_crashes = std::nullopt;
  pg::Value group_key = pg::null(TEXTOID);
  pg::Value headers = pg::null(JSONBOID);
  std::optional<std::string_view> job_key = std::nullopt;
  KeyMode mode = KeyMode::keep;
  TimestampTz now = 0;
};

struct Enqueued {
  std::int64_t job_id;
  bool is_created; // false: the live job that holds the key
};

// In this transaction. The order has been checked.
Enqueued enqueue_order(const Order& order);

} // namespace jobq::queue
