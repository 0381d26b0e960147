// The manager: one process in each database that has the extension. It does what is due: jobs whose
// time has come, leases that expired, rows to prune, listeners to be told.
#pragma once

#include "pg/background.hpp"

namespace jobq::worker {

inline constexpr pg::WorkerKind kManager = {.type = "jobq manager", .main = "jobq_manager_main"};

} // namespace jobq::worker
