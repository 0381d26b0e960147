// Cancelling: a live job ends without having completed. A running one loses its lease.
#pragma once

#include <cstdint>

#include "pg/call.hpp"

namespace jobq::queue {

// A reason as it is kept, clipped; NULL if there is none.
pg::Value read_reason(const pg::Call& call, pg::Parameter parameter);

// False: no live line has the job.
bool cancel_job(std::int64_t job_id, pg::Value reason);

} // namespace jobq::queue
