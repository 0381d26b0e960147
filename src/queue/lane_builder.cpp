#include "queue/lane_builder.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

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

// A lane with more rows is built by its first ones: then groups queue behind all that is there.
constexpr int kMostRead = 100'000;

// Between two lanes with jobs that others are made for, in nanoseconds.
constexpr core::Tag kRest = 1'000'000'000;

// How long somebody else's look may take before it is not waited for.
constexpr int kMostWaits = 100;
constexpr core::Microseconds kWait = 1000;

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
