// Making, changing, pausing, emptying and dropping queues.
#pragma once

#include <string_view>

#include "core/back_off.hpp"
#include "core/verdict.hpp"

namespace jobq::queue {

// A queue's settings, with the defaults of create_queue.
struct QueueSettings {
  core::Limits limits = {.max_attempts = 10, .max_crashes = 3};
  core::Microseconds lease = 60 * core::kSecond;
  core::BackOff back_off = {.base = 5 * core::kSecond, .cap = core::kHour};
  core::Microseconds keep_completed = core::kDay;
  core::Microseconds keep_dead = 30 * core::kDay;
};

// False if a queue of that name was there; it is unchanged then. Waits for a queue of that name
// that another transaction is making.
bool make_queue(std::string_view name, const QueueSettings& settings);

} // namespace jobq::queue
