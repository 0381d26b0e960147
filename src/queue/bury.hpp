// Jobs that wait in vain: they die without a try, with the reason.
#pragma once

#include <cstdint>
#include <string_view>

namespace jobq::queue {

// A page of the queue's ready jobs; what somebody else has is left. Returns how many.
std::int64_t bury_ready(std::int64_t queue_id, std::string_view reason);

} // namespace jobq::queue
