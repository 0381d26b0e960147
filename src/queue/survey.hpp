// Which lanes a queue has: from shared memory or, if that does not know, from ready.
#pragma once

#include <cstdint>
#include <vector>

#include "core/lane.hpp"

namespace jobq::queue {

// Where to look for ready jobs: from this tag on.
struct Stretch {
  std::int32_t priority = 0;
  core::Tag from = core::kBeforeAll;
};

// The stretches of the queue in which there may be ready jobs, in the order of priority. To be
// asked for before the snapshot of the look.
std::vector<Stretch> stretches_of(std::int64_t queue_id);

} // namespace jobq::queue
