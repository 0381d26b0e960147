#include "core/lane_table.hpp"

#include <algorithm>
#include <type_traits>

#include "core/pure.hpp"

namespace jobq::core {

// These lie in shared memory.
static_assert(std::is_trivially_copyable_v<LaneSlot> && std::is_trivially_copyable_v<KnownQueue> &&
              std::is_trivially_copyable_v<Group> && std::is_trivially_copyable_v<LaneCommon>);

namespace {

LaneSlot* find_slot(std::span<LaneSlot> slots, const LaneKey& key) {
  for (LaneSlot& slot : slots)
    if (slot.state != LaneSlot::State::free && slot.key == key) return &slot;
  return nullptr;
}

LaneSlot* find_open(std::span<LaneSlot> slots, const LaneKey& key) {
  LaneSlot* slot = find_slot(slots, key);
  return slot != nullptr && slot->state == LaneSlot::State::open ? slot : nullptr;
}

// A transaction that has used a lane has tags in flight, which a rebuild's snapshot would not show.
bool may_go(const LaneSlot& slot) {
  return slot.state == LaneSlot::State::open && slot.lane.open == 0;
}

} // namespace

const Lane* LaneTable::find(const LaneKey& key) const {
  LaneSlot* slot = find_open(slots_, key);
  return slot != nullptr ? &slot->lane : nullptr;
}

Lane* LaneTable::find(const Touch& touch) {
  if (touch.is_attached) return &slots_[touch.lane].lane;
  LaneSlot* slot = find_open(slots_, touch.key);
  return slot != nullptr ? &slot->lane : nullptr;
}

// The lane, which stays as long as the touch does; or none.
Lane* LaneTable::meet(Touch& touch) {
  if (touch.is_attached) return &slots_[touch.lane].lane;
  LaneSlot* slot = find_open(slots_, touch.key);
  if (slot == nullptr) {
    common_->laneless_open += touch.is_laneless ? 0 : 1;
    touch.is_laneless = true;
    return nullptr;
  }
  touch.is_attached = true;
  touch.lane = static_cast<std::uint32_t>(slot - slots_.data());
  ++slot->lane.open;
  return &slot->lane;
}

void LaneTable::leave(Touch& touch) {
  if (touch.is_attached) --slots_[touch.lane].lane.open;
  if (touch.is_laneless) --common_->laneless_open;
  touch = {.key = touch.key};
}

Tag LaneTable::put(Touch& touch, const Turn& turn) {
  Lane* lane = meet(touch);
  Tag tag = 0;
  if (lane == nullptr) {
    tag = common_->laneless = std::max(turn.clock, common_->laneless);
  } else {
    Group* group = place_group(touch.lane, turn.group);
    tag = give_tag(*lane, group != nullptr ? &group->last : nullptr, turn.stride);
  }
  touch.put = std::min(touch.put, tag);
  return tag;
}

std::optional<ClaimStart> LaneTable::begin_claim(Touch& touch) {
  Lane* lane = find(touch);
  if (lane != nullptr && lane->is_read_up()) return std::nullopt;
  lane = meet(touch);
  Reading reading = lane != nullptr ? read(*lane) : Reading{};
  return ClaimStart{.reading = reading, .taking = Taking(touch, reading.cursor)};
}

void LaneTable::end_claim(const Touch& touch, ClaimStart& start, const Scan& scan) {
  start.taking.end(scan.lowest);
  Lane* lane = find(touch);
  if (lane != nullptr && start.reading.generation != 0) raise(*lane, start.reading, scan);
}

Taking LaneTable::take(Touch& touch, Tag provisional) {
  meet(touch);
  return Taking(touch, provisional);
}

void LaneTable::commit(Touch& touch) {
  Lane* lane = find(touch);
  if (lane == nullptr) {
    if (touch.put != kNoTag) doubt(touch.key.queue);
  } else {
    appear(*lane, touch.put);
    lane->vtime = std::max(lane->vtime, touch.purged);
  }
  leave(touch);
}

void LaneTable::abort(Touch& touch) {
  abort_subtransaction(touch);
  leave(touch);
}

void LaneTable::abort_subtransaction(const Touch& touch) {
  if (touch.take == kNoTag) return;
  Lane* lane = find(touch);
  lane != nullptr ? lower(*lane, touch.take) : doubt(touch.key.queue);
}

// A free place, or a lane that may go: rather one that is empty.
LaneSlot* LaneTable::choose() {
  LaneSlot* chosen = nullptr;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    LaneSlot& slot = slots_[(common_->next_lane + i) % slots_.size()];
    if (slot.state == LaneSlot::State::free) return &slot;
    if (!may_go(slot)) continue;
    if (chosen == nullptr || (slot.lane.is_read_up() && !chosen->lane.is_read_up())) chosen = &slot;
  }
  return chosen;
}

// There may be rows in it. What its groups are given without a lane goes behind them, whatever the
// clock does.
void LaneTable::retire(const LaneSlot& slot) {
  doubt(slot.key.queue);
  common_->laneless = std::max(common_->laneless, slot.lane.highest);
}

std::optional<std::uint32_t> LaneTable::reserve(const Touch& touch) {
  if (touch.take != kNoTag || find_slot(slots_, touch.key) != nullptr) return std::nullopt;
  LaneSlot* slot = choose();
  if (slot == nullptr) return std::nullopt;
  if (slot->state == LaneSlot::State::open) retire(*slot);
  std::uint32_t at = static_cast<std::uint32_t>(slot - slots_.data());
  common_->next_lane = at + 1;
  *slot = {.state = LaneSlot::State::building, .key = touch.key, .lane = {}};
  slot->lane.generation = ++common_->generations;
  return at;
}

void LaneTable::remember(std::uint32_t at, std::uint64_t group, Tag last) {
  Group* entry = place_group(at, group);
  Tag& known = entry != nullptr ? entry->last : slots_[at].lane.overflow;
  known = std::max(known, last);
}

void LaneTable::install(std::uint32_t at, const Backlog& backlog, Tag clock) {
  Lane& lane = slots_[at].lane;
  bool is_empty = backlog.lowest == kNoTag;
  lane.vtime = is_empty ? std::max(clock, common_->laneless) : backlog.lowest - 1;
  lane.highest = std::max(backlog.highest, common_->laneless);
  lane.start = common_->laneless;
  slots_[at].state = LaneSlot::State::open;
}

void LaneTable::give_back(std::uint32_t at) { slots_[at] = {}; }

// An entry of a lane that is gone may go; of one that is being built it may not, as its vtime is
// low.
Group* LaneTable::place_group(std::uint32_t at, std::uint64_t hash) {
  const Lane& lane = slots_[at].lane;
  Group wanted = {.hash = hash, .generation = lane.generation, .lane = at, .last = lane.overflow};
  return place(groups_, wanted, [this](const Group& group) {
    const Lane& owner = slots_[group.lane].lane;
    return owner.generation != group.generation || group.last <= owner.vtime;
  });
}

KnownQueue* LaneTable::known(const QueueName& queue) const {
  for (KnownQueue& known : queues_)
    if (known.doubted != 0 && known.queue == queue) return &known;
  return nullptr;
}

void LaneTable::doubt(const QueueName& queue) {
  KnownQueue* entry = known(queue);
  if (entry == nullptr) return;
  entry->is_complete = false;
  entry->doubted = ++common_->doubts;
}

std::uint64_t LaneTable::begin_survey(const QueueName& queue) {
  KnownQueue* entry = known(queue);
  if (entry == nullptr) {
    if (queues_.empty()) return 0;
    entry = &queues_[common_->next_queue++ % queues_.size()];
    *entry = {.queue = queue, .doubted = ++common_->doubts, .is_complete = false};
  }
  return entry->doubted;
}

void LaneTable::end_survey(const QueueName& queue, std::uint64_t doubted) {
  KnownQueue* entry = known(queue);
  if (entry != nullptr && entry->doubted == doubted) entry->is_complete = true;
}

Reading LaneTable::begin_check(const LaneKey& key) const {
  const Lane* lane = find(key);
  return lane != nullptr ? read(*lane) : Reading{};
}

// Always lowers; a callback that is still to come is no fault. Who has touched the lane before
// there was one is not among its `open`.
bool LaneTable::end_check(const LaneKey& key, const Reading& reading, Tag found) {
  LaneSlot* slot = find_open(slots_, key);
  if (slot == nullptr || found >= reading.cursor) return false;
  Lane& lane = slot->lane;
  bool is_fault = lane.generation == reading.generation && lane.lowerings == reading.lowerings &&
                  lane.open == 0 && common_->laneless_open == 0;
  lower(lane, found);
  return is_fault;
}

} // namespace jobq::core
