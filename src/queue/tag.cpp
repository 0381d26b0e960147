#include "queue/tag.hpp"

#include "queue/group.hpp"
#include "queue/lane_builder.hpp"
#include "queue/lanes.hpp"

namespace jobq::queue {

core::Tag give_tag(std::int64_t queue_id, std::int32_t priority, pg::Value group_key) {
  GroupTurn group = turn_of(queue_id, group_key);
  core::Turn turn = {.group = group.hash, .stride = group.stride};
  core::Touch& touch = touch_of(queue_id, priority);
  touch.expect(turn.group);
  auto tag = in_lanes([&](core::LaneTable& table) { return table.try_put(touch, turn); });
  if (tag) return *tag;
  open_lane(touch);
  turn.clock = lane_clock();
  return in_lanes([&](core::LaneTable& table) { return table.put(touch, turn); });
}

} // namespace jobq::queue
