// The process that runs SQL jobs: bound to one database and one role, it claims from that role's
// queue as any worker would, runs the command as a client would, and says how it ended.
#pragma once

#include "pg/background.hpp"

namespace jobq::worker {

inline constexpr pg::WorkerKind kExecutor = {.type = "jobq executor", .main = "jobq_executor_main"};

} // namespace jobq::worker
