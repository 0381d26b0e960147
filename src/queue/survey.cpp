#include "queue/survey.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include <boost/container/static_vector.hpp>

#include "pg/index_walk.hpp"
#include "pg/snapshot.hpp"
#include "pg/table.hpp"
#include "queue/lane_builder.hpp"
#include "queue/lanes.hpp"
#include "queue/tables.hpp"

namespace jobq::queue {

namespace {

constexpr std::size_t kMostKnown = 32; // lanes of a queue that are known without a look

struct Known {
  boost::container::static_vector<Stretch, kMostKnown> lanes; // that may have rows
  bool is_complete = false;
};

Known known_lanes(std::int64_t queue_id) {
  return in_lanes([name = queue_name(queue_id)](const core::LaneTable& table) {
    Known known;
    bool has_room = true;
    known.is_complete = table.visit(name, [&](std::int32_t priority, const core::Lane& lane) {
      if (lane.is_read_up()) return;
      has_room = has_room && known.lanes.size() < kMostKnown;
      if (has_room) known.lanes.push_back({.priority = priority, .from = lane.cursor});
    });
    known.is_complete = known.is_complete && has_room;
    return known;
  });
}

// Of the rows that are committed by now, and this transaction's.
std::vector<std::int32_t> priorities_in_ready(std::int64_t queue_id) {
  pg::FreshSnapshot snapshot(pg::View::latest);
  pg::Table ready(ReadyTable::shape);
  pg::IndexWalk row(ready, "ready_pkey");
  std::vector<std::int32_t> priorities;
  std::int32_t least = std::numeric_limits<std::int16_t>::min();
  while (least <= std::numeric_limits<std::int16_t>::max() &&
         row.seek({pg::int8(queue_id)}, pg::int2(least))) {
    priorities.push_back(DatumGetInt16(row.at(ReadyTable::priority).datum));
    least = priorities.back() + 1;
  }
  return priorities;
}

// Nothing: it has no lane.
std::optional<core::Tag> cursor_of(const core::Touch& touch) {
  return in_lanes([&](const core::LaneTable& table) {
    const core::Lane* lane = table.find(touch.key);
    return lane != nullptr ? std::optional(lane->cursor) : std::nullopt;
  });
}

// Of the lanes that are known those matter that are to be made anew; the others have no rows yet
// that anybody sees, or are met again.
std::vector<Stretch> survey(std::int64_t queue_id, const Known& known) {
  std::uint64_t doubted = in_lanes(
      [name = queue_name(queue_id)](core::LaneTable& table) { return table.begin_survey(name); });
  std::vector<std::int32_t> priorities = priorities_in_ready(queue_id);
  for (const Stretch& lane : known.lanes)
    if (!std::ranges::binary_search(priorities, lane.priority))
      open_lane(touch_of(queue_id, lane.priority));
  std::vector<Stretch> stretches;
  bool is_complete = true;
  for (std::int32_t priority : priorities) {
    core::Touch& touch = touch_of(queue_id, priority);
    open_lane(touch);
    std::optional<core::Tag> cursor = cursor_of(touch);
    is_complete = is_complete && cursor.has_value();
    stretches.push_back({.priority = priority, .from = cursor.value_or(core::kBeforeAll)});
  }
  if (is_complete)
    in_lanes([&](core::LaneTable& table) { table.end_survey(queue_name(queue_id), doubted); });
  return stretches;
}

} // namespace

std::vector<Stretch> stretches_of(std::int64_t queue_id) {
  Known known = known_lanes(queue_id);
  std::vector<Stretch> stretches(known.lanes.begin(), known.lanes.end());
  if (!known.is_complete) stretches = survey(queue_id, known);
  std::ranges::sort(stretches, {}, &Stretch::priority);
  return stretches;
}

} // namespace jobq::queue
