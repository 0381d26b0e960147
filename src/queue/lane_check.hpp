// What the manager reads of a lane, piece by piece. One is the net under the lanes: a look for free
// jobs below the cursor; there must be none, but for what somebody put into the tables by hand. The
// other completes a lane that was made by the first of its jobs only.
#pragma once

#include <optional>

#include "core/touch.hpp"

namespace jobq::queue {

// A piece of a lane, from a tag on.
struct Piece {
  core::LaneKey key;
  core::Tag from = core::kBeforeAll;
};

struct Checked {
  std::optional<core::Tag> next; // where the rest begins; nothing: all was looked at
  bool was_too_high = false;     // a free job was below the cursor, and nobody about to lower it
};

// Looks at one piece, in the caller's transaction and with a snapshot of its own; lowers the cursor
// to what it finds.
Checked check_piece(const Piece& piece);

// Learns the last tags of the groups in one piece of a lane that is partly known. Where the rest
// begins; nothing: all is known.
std::optional<core::Tag> learn_piece(const Piece& piece, const core::Lane& lane);

} // namespace jobq::queue
