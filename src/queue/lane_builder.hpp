// How a lane comes to be: by a look at the rows that are there, which one process takes for all.
#pragma once

#include "core/touch.hpp"

namespace jobq::queue {

// Makes the touch's lane, if there is none and there is room for it.
void open_lane(core::Touch& touch);

} // namespace jobq::queue
