// One lane: the ready jobs of one queue and priority, in the order of their tags. The index still
// holds the dead entries of jobs that were claimed, so a claim starts at the lane's cursor.
//
// What must hold: a ready row below the cursor is covered by a transaction callback that is still
// to come and lowers the cursor to it.
// Why it holds: whoever makes a row appear (the commit of a put, the abort of a take) lowers in its
// callback, after the change is visible. A claim reads the lane before its snapshot, so a row that
// its scan did not see, or found locked, is lowered to after that reading: before the cursor rises,
// then the ring names it, or after, then the cursor falls again.
//
// Each function is one step under the lane's lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>

namespace jobq::core {

// A job's virtual start time: lanes hand out the lowest first. Tags are positive.
using Tag = std::int64_t;
inline constexpr Tag kBeforeAll = 0;
inline constexpr Tag kNoTag = std::numeric_limits<Tag>::max();
// What is put behind it has the same tag, and goes by the numbers of the jobs. Only rows by another
// hand come that far.
inline constexpr Tag kLastTag = 9'000'000'000'000'000'000;

inline constexpr std::int32_t kMostWeight = 1000;

// How far apart the tags of a group are that has this share (1 to kMostWeight).
constexpr Tag stride_of(std::int32_t weight) {
  return std::max<Tag>(1, kMostWeight / std::max<std::int32_t>(1, weight));
}

struct Lane {
  static constexpr std::size_t kRing = 8;

  std::uint64_t generation = 0; // 0: no lane
  Tag cursor = kBeforeAll;      // claims start here
  Tag vtime = kBeforeAll;       // the highest tag claimed
  Tag highest = kBeforeAll;     // the highest tag given
  Tag start = kBeforeAll;       // no group goes on at or below: tags that the lane does not know
  Tag known_start = kBeforeAll; // that much it will never know; the rest can be learnt
  Tag overflow = kBeforeAll;    // the last tag of the groups that have no entry
  std::uint64_t lowerings = 0;
  std::array<Tag, kRing> lowered_to = {}; // by the last of them
  std::int32_t open = 0;                  // transactions that have used it
  std::uint64_t found_too_high = 0;       // how often its cursor was, and nobody about to lower it
  bool is_foreign = false; // holds rows by another hand: neither highest nor last tags are known

  // Above the highest tag there is no row, committed or in flight.
  bool is_read_up() const { return !is_foreign && cursor > highest; }

  // The last tags of some groups are still to be learnt.
  bool is_partly_known() const { return start > known_start; }

  bool is_to_be_rebuilt() const { return is_foreign && open == 0; }
};

// What a claim knows of a lane from before its snapshot. All of one step: a lowering between two of
// these would be missed.
struct Reading {
  Tag cursor = kBeforeAll;
  Tag vtime = kBeforeAll;
  std::uint64_t lowerings = 0;
  std::uint64_t generation = 0; // 0: there was no lane, nothing will move
};

// What a claim's statement met in a lane.
struct Scan {
  Tag lowest = kNoTag;      // of the rows taken
  Tag highest = kBeforeAll; // of the rows taken
  Tag left = kNoTag;        // the lowest row that was free and left all the same
  bool is_to_end = false;   // no row of the snapshot was cut off by the limit
  bool is_current = true;   // the snapshot is newer than the reading: false in REPEATABLE READ

  bool took() const { return highest > kBeforeAll; }

  // Behind this the statement may not have looked. The highest row taken and not one more: another
  // can have the same tag. Rows of one's own are covered by one's own abort.
  Tag bound() const { return std::min(is_to_end ? kNoTag : highest, left); }
};

// The tag of a group's next job. `last` is the group's last tag; null if the group table has no
// room: then it goes behind all that was given, and so do all later ones without an entry.
Tag give_tag(Lane& lane, Tag* last, Tag stride);

Reading read(const Lane& lane);

// A row at the tag has appeared. Unconditionally, also where the cursor is below: a claim under way
// that has read the lane may raise it.
void lower(Lane& lane, Tag tag);

// The end of a claim: as far as nothing can have been missed.
void raise(Lane& lane, const Reading& reading, const Scan& scan);

// A committed put. No claim passes the vtime that it has read by more than one, so a tag above
// needs no lowering.
void appear(Lane& lane, Tag put);

// Scans of one statement over several lanes, in the order in which it visited them. Those before
// the last lane that gave a row were read to their end; a call that came back short has read all.
void set_ends(std::span<Scan> scans, bool is_full);

} // namespace jobq::core
