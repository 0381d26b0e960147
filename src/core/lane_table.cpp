#include "core/lane_table.hpp"

#include <algorithm>
#include <type_traits>

#include "core/pure.hpp"

namespace jobq::core {

// These lie in shared memory.
static_assert(std::is_trivially_copyable_v<LaneSlot> && std::is_trivially_copyable_v<KnownQueue> &&
              std::is_trivially_copyable_v<Group> && std::is_trivially_copyable_v<LaneCommon>);

namespace {

// A transaction that has used a lane has tags in flight, which a rebuild's snapshot would not show.
bool may_go(const LaneSlot& slot) {
  return slot.state == LaneSlot::State::open && slot.lane.open == 0;
}

constexpr int kInUse = 0;
constexpr int kNew = 1;
constexpr int kBusy = 2;
constexpr int kIdle = 3;
constexpr std::size_t kMostLooks = 64;
constexpr std::size_t kPlacesOfQueue = 8;

std::uint64_t bits_of(const QueueName& queue) {
  return static_cast<std::uint64_t>(queue.queue_id) + queue.database * kSpread;
}

} // namespace

std::uint32_t LaneTable::link_to(const LaneSlot& slot) const {
  return static_cast<std::uint32_t>(&slot - slots_.data()) + 1;
}

// Of the queue, not of the key: who looks for a queue's lanes walks one chain.
std::uint32_t* LaneTable::bucket(const QueueName& queue) const {
  return buckets_.empty() ? nullptr : &buckets_[hashed(bits_of(queue), buckets_.size())];
}

LaneSlot* LaneTable::first_of(const QueueName& queue) const {
  const std::uint32_t* first = bucket(queue);
  return first != nullptr ? slot_at(*first) : nullptr;
}

LaneSlot* LaneTable::find_slot(const LaneKey& key) const {
  LaneSlot* slot = first_of(key.queue);
  while (slot != nullptr && slot->key != key) slot = slot_at(slot->next);
  return slot;
}

LaneSlot* LaneTable::find_open(const LaneKey& key) const {
  LaneSlot* slot = find_slot(key);
  return slot != nullptr && slot->state == LaneSlot::State::open ? slot : nullptr;
}

bool LaneTable::is_being_built(const LaneKey& key) const {
  const LaneSlot* slot = find_slot(key);
  return slot != nullptr && slot->state == LaneSlot::State::building;
}

const Lane* LaneTable::find(const LaneKey& key) const {
  const LaneSlot* slot = find_open(key);
  return slot != nullptr ? &slot->lane : nullptr;
}

Lane* LaneTable::find(const Touch& touch) const {
  if (touch.is_attached) return &slots_[touch.lane].lane;
  LaneSlot* slot = find_open(touch.key);
  return slot != nullptr ? &slot->lane : nullptr;
}

Lane* LaneTable::find_generation(const LaneKey& key, std::uint64_t generation) const {
  LaneSlot* slot = find_open(key);
  return slot != nullptr && slot->lane.generation == generation ? &slot->lane : nullptr;
}

// The lane, which stays as long as the touch does; or none.
Lane* LaneTable::meet(Touch& touch) {
  if (touch.is_attached) return &slots_[touch.lane].lane;
  LaneSlot* slot = find_open(touch.key);
  if (slot == nullptr) {
    common_->laneless_open += touch.is_laneless ? 0 : 1;
    touch.is_laneless = true;
    return nullptr;
  }
  touch.is_attached = true;
  touch.lane = link_to(*slot) - 1;
  ++slot->lane.open;
  return &slot->lane;
}

void LaneTable::leave(Touch& touch) {
  if (touch.is_attached) --slots_[touch.lane].lane.open;
  if (touch.is_laneless) --common_->laneless_open;
  touch.reset();
}

std::optional<Tag> LaneTable::try_put(Touch& touch, const Turn& turn) {
  const Lane* lane = find(touch);
  if (lane == nullptr || lane->is_to_be_rebuilt()) return std::nullopt;
  return put(touch, turn);
}

Tag LaneTable::put(Touch& touch, const Turn& turn) {
  Lane* lane = meet(touch);
  Tag tag = lane != nullptr ? give(*lane, touch, turn) : give_without_lane(touch.key, turn.clock);
  touch.put = std::min(touch.put, tag);
  return tag;
}

Tag LaneTable::give_without_lane(const LaneKey& key, Tag clock) {
  if (LaneSlot* slot = find_slot(key)) slot->may_miss_puts = true;
  return common_->laneless = std::max(clock, common_->laneless);
}

// Never back below the start: what stands there may be learnt meanwhile, and the entry must not
// forget it.
Tag LaneTable::give(Lane& lane, Touch& touch, const Turn& turn) {
  Group* group = place_group(touch.lane, turn.group);
  if (group == nullptr) return give_tag(lane, nullptr, turn.stride);
  Tag before = group->last;
  Tag tag = give_tag(lane, &group->last, turn.stride);
  if (Given* given = touch.given_to(turn.group)) {
    if (given->after != before) given->before = std::max(before, lane.start);
    given->after = tag;
  }
  return tag;
}

// A batch that was rolled back has used no turns. An entry that still holds the last tag of the
// batch is either the same, and nobody of the group has put since; or that tag is at or below the
// vtime, and an entry that low says nothing.
void LaneTable::restore(const Touch& touch) {
  if (!touch.is_attached) return;
  for (const Given& given : touch.given) {
    Group* entry = find_group(
        groups_, {.hash = given.group, .generation = slots_[touch.lane].lane.generation});
    if (entry != nullptr && entry->last == given.after) entry->last = given.before;
  }
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
  bool is_gone = touch.is_attached && touch.is_dropped;
  leave(touch);
  if (is_gone && may_go(slots_[touch.lane])) remove(slots_[touch.lane]);
}

void LaneTable::abort(Touch& touch) {
  abort_subtransaction(touch);
  restore(touch);
  leave(touch);
}

void LaneTable::abort_subtransaction(const Touch& touch) {
  if (touch.take == kNoTag) return;
  Lane* lane = find(touch);
  lane != nullptr ? lower(*lane, touch.take) : doubt(touch.key.queue);
}

// Nothing here looks through all slots as long as one is free.
LaneSlot* LaneTable::take_free() {
  if (LaneSlot* slot = slot_at(common_->free_lane)) {
    common_->free_lane = slot->next;
    return slot;
  }
  return common_->used_lanes < slots_.size() ? &slots_[common_->used_lanes++] : nullptr;
}

// The higher the rather. One that was just built rests: its builder has yet to use it.
int LaneTable::readiness_to_go(const LaneSlot& slot) const {
  if (!may_go(slot)) return kInUse;
  if (slot.lane.is_foreign) return kIdle;
  if (common_->generations - slot.lane.generation < slots_.size() / 2) return kNew;
  return slot.lane.is_read_up() ? kIdle : kBusy;
}

// A free place, or a lane that may go: the best of the next few, since everybody waits meanwhile.
LaneSlot* LaneTable::choose(Eviction eviction) {
  if (LaneSlot* slot = take_free()) return slot;
  if (slots_.empty()) return nullptr;
  std::size_t few = std::min(kMostLooks, slots_.size());
  LaneSlot* chosen = nullptr;
  int readiness = eviction == Eviction::of_idle ? kBusy : kInUse;
  for (std::size_t i = 0; i < few && readiness < kIdle; ++i) {
    LaneSlot& slot = slots_[(common_->next_lane + i) % slots_.size()];
    if (readiness_to_go(slot) <= readiness) continue;
    chosen = &slot;
    readiness = readiness_to_go(slot);
  }
  common_->next_lane = static_cast<std::uint32_t>((common_->next_lane + few) % slots_.size());
  if (chosen == nullptr) return nullptr;
  retire(*chosen);
  unchain(*chosen);
  return chosen;
}

// There may be rows in it. What its groups are given without a lane goes behind them, whatever the
// clock does.
void LaneTable::retire(const LaneSlot& slot) {
  doubt(slot.key.queue);
  common_->laneless = std::max(common_->laneless, slot.lane.highest);
}

void LaneTable::chain(LaneSlot& slot, const LaneKey& key) {
  std::uint32_t* first = bucket(key.queue);
  slot = {.key = key, .lane = {}, .next = *first};
  *first = link_to(slot);
}

void LaneTable::unchain(LaneSlot& slot) {
  std::uint32_t* link = bucket(slot.key.queue);
  while (*link != link_to(slot)) link = &slot_at(*link)->next;
  *link = slot.next;
}

void LaneTable::free(LaneSlot& slot) {
  unchain(slot);
  slot = {.key = {}, .lane = {}, .next = common_->free_lane};
  common_->free_lane = link_to(slot);
}

bool LaneTable::take_eviction(Tag clock, Tag rest) {
  bool has_clock_fallen = clock < common_->evicts_from - rest;
  if (clock < common_->evicts_from && !has_clock_fallen) return false;
  common_->evicts_from = clock + rest;
  return true;
}

std::optional<std::uint32_t> LaneTable::reserve(const Touch& touch, Eviction eviction) {
  if (touch.take != kNoTag || buckets_.empty()) return std::nullopt;
  LaneSlot* slot = find_slot(touch.key);
  if (slot == nullptr) {
    slot = choose(eviction);
    if (slot == nullptr) return std::nullopt;
    chain(*slot, touch.key);
  } else {
    if (slot->state != LaneSlot::State::open || !slot->lane.is_to_be_rebuilt()) return std::nullopt;
    retire(*slot);
  }
  slot->state = LaneSlot::State::building;
  slot->lane = {.generation = ++common_->generations};
  slot->may_miss_puts = common_->laneless_open > 0;
  return link_to(*slot) - 1;
}

void LaneTable::remember(std::uint32_t at, std::uint64_t group, Tag last) {
  Group* entry = place_group(at, group);
  Tag& known = entry != nullptr ? entry->last : slots_[at].lane.overflow;
  known = std::max(known, last);
}

// If nobody was about to end without a lane at the reservation, and nobody has put into this one
// since, all rows put without it are in the builder's snapshot or gone. Those put into it before
// are so anyway: a lane with open transactions does not go.
void LaneTable::install(std::uint32_t at, const Backlog& backlog, Tag clock) {
  Lane& lane = slots_[at].lane;
  bool is_empty = backlog.lowest == kNoTag;
  lane.vtime = is_empty ? std::max(clock, common_->laneless) : backlog.lowest - 1;
  lane.known_start = slots_[at].may_miss_puts ? common_->laneless : kBeforeAll;
  lane.highest = std::max(backlog.highest, lane.known_start);
  lane.start = backlog.is_partly ? lane.highest : lane.known_start;
  slots_[at].state = LaneSlot::State::open;
}

void LaneTable::give_back(std::uint32_t at) { free(slots_[at]); }

bool LaneTable::learn(const LaneKey& key, std::uint64_t generation, std::uint64_t group, Tag last) {
  if (find_generation(key, generation) == nullptr) return false;
  remember(link_to(*find_slot(key)) - 1, group, last);
  return true;
}

// Rows put since install are in the entries, or in the overflow. Those of before that are still
// there stood in every snapshot since, also while a claim had them.
void LaneTable::know_all(const LaneKey& key, std::uint64_t generation) {
  if (Lane* lane = find_generation(key, generation)) lane->start = lane->known_start;
}

void LaneTable::begin_copy() { ++common_->copies_open; }

void LaneTable::end_copy() { --common_->copies_open; }

// The rows can be anywhere, also where a builder did not see them, and in queues without a lane.
void LaneTable::copied(std::uint32_t database) {
  for (LaneSlot& slot : slots_.first(common_->used_lanes))
    if (slot.state != LaneSlot::State::free && slot.key.queue.database == database)
      mark_foreign(slot);
  doubt_queues(database);
}

void LaneTable::distrust(const LaneKey& key, std::uint64_t generation, Tag found) {
  LaneSlot* slot = find_open(key);
  if (slot == nullptr || slot->lane.generation != generation) return;
  if (found > slot->lane.highest) mark_foreign(*slot);
}

void LaneTable::doubt_queues(std::uint32_t database) {
  for (const KnownQueue& known : queues_)
    if (known.queue.database == database) doubt(known.queue);
}

// For all that is known here there may be rows in it: a savepoint may have kept the queue.
void LaneTable::remove(LaneSlot& slot) {
  retire(slot);
  free(slot);
}

void LaneTable::mark_foreign(LaneSlot& slot) {
  lower(slot.lane, kBeforeAll);
  slot.lane.is_foreign = true;
}

// Its queues may come again under the same ids. A lane that is in use is left to who rebuilds it.
void LaneTable::forget(std::uint32_t database) {
  for (LaneSlot& slot : slots_.first(common_->used_lanes)) {
    if (slot.state == LaneSlot::State::free || slot.key.queue.database != database) continue;
    if (may_go(slot)) {
      retire(slot);
      free(slot);
    } else {
      mark_foreign(slot);
    }
  }
  for (KnownQueue& known : queues_)
    if (known.queue.database == database) known = {};
}

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

// A queue stands in one of these few.
std::span<KnownQueue> LaneTable::places_of(const QueueName& queue) const {
  std::size_t count = std::min(kPlacesOfQueue, queues_.size());
  if (count == 0) return {};
  return queues_.subspan(hashed(bits_of(queue), queues_.size() / count) * count, count);
}

KnownQueue* LaneTable::known(const QueueName& queue) const {
  for (KnownQueue& known : places_of(queue))
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
  if (const KnownQueue* entry = known(queue)) return entry->doubted;
  std::span<KnownQueue> places = places_of(queue);
  if (places.empty()) return 0;
  auto place = std::ranges::find(places, 0U, &KnownQueue::doubted);
  KnownQueue& entry =
      place != places.end() ? *place : places[common_->next_queue++ % places.size()];
  entry = {.queue = queue, .doubted = ++common_->doubts, .is_complete = false};
  return entry.doubted;
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
// there was one is not among its `open`, nor who copies.
bool LaneTable::end_check(const LaneKey& key, const Reading& reading, Tag found) {
  LaneSlot* slot = find_open(key);
  if (slot == nullptr || found >= reading.cursor) return false;
  Lane& lane = slot->lane;
  bool is_fault = lane.generation == reading.generation && lane.lowerings == reading.lowerings &&
                  lane.open == 0 && common_->laneless_open == 0 && common_->copies_open == 0;
  lower(lane, found);
  lane.found_too_high += is_fault ? 1 : 0;
  common_->found_too_high += is_fault ? 1 : 0;
  return is_fault;
}

const LaneSlot* LaneTable::at(std::size_t i) const {
  return slots_[i].state == LaneSlot::State::open ? &slots_[i] : nullptr;
}

void LaneTable::count_groups(std::span<std::uint32_t> by_slot, std::size_t from,
                             std::size_t to) const {
  for (std::size_t i = from; i < std::min(to, groups_.size()); ++i) {
    const Group& group = groups_[i];
    if (group.generation == 0) continue;
    const Lane& lane = slots_[group.lane].lane;
    if (group.generation == lane.generation && group.last > lane.vtime) ++by_slot[group.lane];
  }
}

} // namespace jobq::core
