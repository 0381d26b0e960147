// The lock is let go between two lanes.
#include "queue/lane_states.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "pg/door.hpp"
#include "pg/result_set.hpp"
#include "pg/session.hpp"
#include "queue/lanes.hpp"
#include "settings.hpp"

namespace jobq::queue {

namespace {

constexpr std::size_t kPage = 1000; // places of groups that are looked at in one step

std::vector<std::uint32_t> count_groups() {
  std::vector<std::uint32_t> counts(lanes().size());
  for (std::size_t from = 0; from < lanes().group_places(); from += kPage)
    in_lanes([&](const core::LaneTable& table) { table.count_groups(counts, from, from + kPage); });
  return counts;
}

std::optional<core::LaneSlot> slot_at(std::size_t place) {
  return in_lanes([place](const core::LaneTable& table) {
    const core::LaneSlot* slot = table.at(place);
    return slot != nullptr ? std::optional(*slot) : std::nullopt;
  });
}

Datum lane_states(pg::Call& call) {
  std::vector<std::uint32_t> groups = count_groups();
  pg::ResultSet set(call);
  for (std::size_t place = 0; place < groups.size(); ++place) {
    std::optional<core::LaneSlot> slot = slot_at(place);
    if (!slot || slot->key.queue.database != pg::my_database()) continue;
    const core::Lane& lane = slot->lane;
    set.add({pg::int8(slot->key.queue.queue_id), pg::int4(slot->key.priority),
             pg::int8(lane.cursor), pg::int8(lane.vtime), pg::int8(lane.highest),
             pg::int8(groups[place]), pg::int8(static_cast<std::int64_t>(lane.lowerings)),
             pg::int8(static_cast<std::int64_t>(lane.found_too_high)), pg::int4(lane.open)});
  }
  return set.done();
}

} // namespace

LaneReport report_on_lanes() {
  LaneReport report = {.places = lanes().size(),
                       .group_places = static_cast<std::size_t>(settings::max_groups)};
  for (std::uint32_t groups : count_groups()) report.groups += groups;
  for (std::size_t place = 0; place < report.places; ++place) {
    std::optional<core::LaneSlot> slot = slot_at(place);
    if (!slot) continue;
    report.busy += slot->lane.open > 0 || !slot->lane.is_read_up() ? 1 : 0;
    report.crowded += slot->lane.overflow > slot->lane.vtime ? 1 : 0;
  }
  report.found_too_high =
      in_lanes([](const core::LaneTable& table) { return table.found_too_high(); });
  return report;
}

JOBQ_READING(jobq_lane_states, lane_states)

} // namespace jobq::queue
