#include "queue/survey.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include <boost/container/static_vector.hpp>

#include "pg/clock.hpp"
#include "pg/index_walk.hpp"
#include "pg/sleep.hpp"
#include "pg/snapshot.hpp"
#include "pg/table.hpp"
#include "queue/group.hpp"
#include "queue/lanes.hpp"
#include "queue/tables.hpp"

namespace jobq::queue {

namespace {

constexpr std::size_t kMostKnown = 32; // lanes of a queue that are known without a look

// A lane with more rows is built by its first ones: then groups queue behind all that is there.
constexpr int kMostRead = 100'000;

// Between two lanes with jobs that others are made for, in nanoseconds.
constexpr core::Tag kRest = 1'000'000'000;

// How long somebody else's look may take before it is not waited for.
constexpr int kMostWaits = 100;
constexpr core::Microseconds kWait = 1000;

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

Stretch stretch_of(const core::Touch& touch) {
  return in_lanes([&](const core::LaneTable& table) {
    const core::Lane* lane = table.find(touch.key);
    return Stretch{.priority = touch.key.priority,
                   .from = lane != nullptr ? lane->cursor : core::kBeforeAll};
  });
}

bool has_lane(const core::Touch& touch) {
  return in_lanes([&](const core::LaneTable& table) { return table.find(touch.key) != nullptr; });
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
    is_complete = is_complete && has_lane(touch);
    stretches.push_back(stretch_of(touch));
  }
  if (is_complete)
    in_lanes([&](core::LaneTable& table) { table.end_survey(queue_name(queue_id), doubted); });
  return stretches;
}

// The place of the lane that this process builds.
std::optional<std::uint32_t> building;

void give_back() {
  if (!building) return;
  in_lanes([](core::LaneTable& table) { table.give_back(*building); });
  building.reset();
}

// The last tags of the groups that have rows, and where the rows begin and end.
struct Rows {
  core::Backlog backlog;
  std::unordered_map<std::uint64_t, core::Tag> last;
};

Rows read_rows(const core::LaneKey& key) {
  pg::FreshSnapshot snapshot(pg::View::latest);
  pg::Table ready(ReadyTable::shape);
  pg::IndexWalk row(ready, "ready_pkey");
  const std::initializer_list<pg::Value> lane = {pg::int8(key.queue.queue_id),
                                                 pg::int2(key.priority)};
  Rows rows;
  int read = 0;
  for (bool is_row = row.seek(lane); is_row; is_row = row.next()) {
    if (read++ == kMostRead) {
      rows.backlog.is_partly = true;
      row.seek_last(lane);
    }
    core::Tag tag = row.int8(ReadyTable::tag);
    rows.backlog.lowest = std::min(rows.backlog.lowest, tag);
    rows.backlog.highest = std::max(rows.backlog.highest, tag);
    if (rows.backlog.is_partly) break;
    rows.last[group_hash(row.at(ReadyTable::group_key))] = tag;
  }
  return rows;
}

void build(std::uint32_t at, const core::LaneKey& key) {
  pg::at_exit(give_back);
  Rows rows = read_rows(key);
  for (const auto& group : rows.last)
    in_lanes([&](core::LaneTable& table) { table.remember(at, group.first, group.second); });
  core::Tag clock = lane_clock();
  in_lanes([&](core::LaneTable& table) { table.install(at, rows.backlog, clock); });
  building.reset();
}

// Whoever goes on without the lane has all groups queue behind what is there.
void wait_for_builder(const core::LaneKey& key) {
  auto is_being_built = [&] {
    return in_lanes([&](const core::LaneTable& table) { return table.is_being_built(key); });
  };
  for (int waits = 0; waits < kMostWaits && is_being_built(); ++waits) pg::sleep(kWait, "JobqLane");
}

} // namespace

std::vector<Stretch> stretches_of(std::int64_t queue_id) {
  Known known = known_lanes(queue_id);
  std::vector<Stretch> stretches(known.lanes.begin(), known.lanes.end());
  if (!known.is_complete) stretches = survey(queue_id, known);
  std::ranges::sort(stretches, {}, &Stretch::priority);
  return stretches;
}

void open_lane(core::Touch& touch) {
  wait_for_builder(touch.key);
  core::Tag clock = lane_clock();
  building = in_lanes([&](core::LaneTable& table) {
    auto place = table.reserve(touch, core::LaneTable::Eviction::of_idle);
    bool may_evict =
        !place && table.find(touch.key) == nullptr && table.take_eviction(clock, kRest);
    return may_evict ? table.reserve(touch) : place;
  });
  if (!building) return;
  try {
    build(*building, touch.key);
  } catch (...) {
    give_back();
    throw;
  }
}

} // namespace jobq::queue
