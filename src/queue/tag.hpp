// A job's tag: where it stands in its lane. Every way into ready asks for one.
#pragma once

#include <cstdint>

#include "core/lane.hpp"
#include "pg/value.hpp"

namespace jobq::queue {

// The tag of a row that is put into ready next, in this transaction: behind its group's last one.
core::Tag give_tag(std::int64_t queue_id, std::int32_t priority, pg::Value group_key);

} // namespace jobq::queue
