#include "queue/lane_check.hpp"

#include <algorithm>
#include <unordered_map>

#include "pg/index_walk.hpp"
#include "pg/snapshot.hpp"
#include "pg/table.hpp"
#include "queue/group.hpp"
#include "queue/lanes.hpp"
#include "queue/tables.hpp"

namespace jobq::queue {

namespace {

// Of the index: a few milliseconds' worth, however many lead to dead rows.
constexpr int kMostEntries = 20'000;
constexpr int kTagInKey = 2;
constexpr int kMostLearnt = 5'000;

// After so many entries: where the rest begins.
core::Tag tag_behind(const pg::IndexWalk& row, const Piece& piece) {
  return std::max(row.entry(kTagInKey), piece.from + 1);
}

struct Found {
  core::Tag free = core::kNoTag;
  std::optional<core::Tag> next;
};

// What was read of the lane before the snapshot, and up to where nobody else will look.
struct Bounds {
  core::Reading reading;
  core::Tag end = core::kBeforeAll;
};

Bounds bounds_of(const core::LaneKey& key) {
  return in_lanes([&](const core::LaneTable& table) {
    const core::Lane* lane = table.find(key);
    core::Reading reading = table.begin_check(key);
    bool is_read_up = lane != nullptr && lane->is_read_up();
    return Bounds{.reading = reading, .end = is_read_up ? core::kNoTag : reading.cursor};
  });
}

// As a claim would see them: a job that somebody is taking is his, until his end tells.
Found look(const Piece& piece, core::Tag end) {
  pg::FreshSnapshot snapshot(pg::View::latest);
  pg::Table ready(ReadyTable::shape);
  pg::IndexWalk row(ready, "ready_pkey");
  int entries = kMostEntries;
  bool is_row = row.seek_within({pg::int8(piece.key.queue.queue_id), pg::int2(piece.key.priority)},
                                pg::int8(piece.from), entries);
  for (; is_row; is_row = row.next_within(entries)) {
    core::Tag tag = row.int8(ReadyTable::tag);
    if (tag >= end) return {};
    if (!row.is_held()) return {.free = tag, .next = std::nullopt};
  }
  if (entries > 0) return {};
  return {.next = tag_behind(row, piece)};
}

} // namespace

Checked check_piece(const Piece& piece) {
  Bounds bounds = bounds_of(piece.key);
  if (piece.from >= bounds.end) return {};
  Found found = look(piece, bounds.end);
  if (found.free == core::kNoTag) return {.next = found.next};
  return {.next = std::nullopt, .was_too_high = in_lanes([&](core::LaneTable& table) {
                                  table.distrust(piece.key, bounds.reading.generation, found.free);
                                  return table.end_check(piece.key, bounds.reading, found.free);
                                })};
}

// A job below the cursor needs no entry: what its group is given next stands behind it anyway.
std::optional<core::Tag> learn_piece(const Piece& piece, const core::Lane& lane) {
  pg::FreshSnapshot snapshot(pg::View::latest);
  pg::Table ready(ReadyTable::shape);
  pg::IndexWalk row(ready, "ready_pkey");
  core::Tag from = std::max(piece.from, lane.cursor);
  std::unordered_map<std::uint64_t, core::Tag> last;
  int entries = kMostLearnt;
  bool is_row = row.seek_within({pg::int8(piece.key.queue.queue_id), pg::int2(piece.key.priority)},
                                pg::int8(from), entries);
  for (; is_row && row.int8(ReadyTable::tag) <= lane.start; is_row = row.next_within(entries))
    last[group_hash(row.at(ReadyTable::group_key))] = row.int8(ReadyTable::tag);
  for (const auto& group : last)
    in_lanes([&](core::LaneTable& table) {
      table.learn(piece.key, lane.generation, group.first, group.second);
    });
  if (!is_row && entries == 0) return tag_behind(row, {.key = piece.key, .from = from});
  in_lanes([&](core::LaneTable& table) { table.know_all(piece.key, lane.generation); });
  return std::nullopt;
}

} // namespace jobq::queue
