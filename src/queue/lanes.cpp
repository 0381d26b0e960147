// One lock for all: a step takes less than a microsecond, and a job meets three or four of them.
#include "queue/lanes.hpp"

#include <algorithm>

#include "pg/clock.hpp"
#include "pg/ending.hpp"
#include "pg/session.hpp"
#include "pg/transaction.hpp"
#include "settings.hpp"

namespace jobq::queue {

namespace {

// The arrays of core::LaneTable lie behind one another, the ones with the strictest alignment
// first. All zero is all free.
struct Lanes {
  pg::SharedLock lock;
  core::LaneCommon common; // held by the lock, as is all that follows
};

template <typename T>
struct Part {
  std::size_t begin;
  std::size_t count;

  std::size_t end() const { return begin + count * sizeof(T); }
  std::span<T> of(Lanes* lanes) const {
    return {reinterpret_cast<T*>(reinterpret_cast<char*>(lanes) + begin), count};
  }
};

struct Layout {
  std::size_t lane_count = static_cast<std::size_t>(settings::max_lanes);
  std::size_t group_count = core::places_for(static_cast<std::size_t>(settings::max_groups));
  Part<core::LaneSlot> slots = {sizeof(Lanes), lane_count};
  Part<core::KnownQueue> queues = {slots.end(), std::max<std::size_t>(lane_count, 8)};
  Part<core::Group> groups = {queues.end(), group_count};
  Part<std::uint32_t> buckets = {groups.end(), std::max<std::size_t>(lane_count, 1)};
};
static_assert(alignof(core::LaneSlot) <= alignof(Lanes) && sizeof(Lanes) % 8 == 0 &&
              sizeof(core::LaneSlot) % 8 == 0 && sizeof(core::KnownQueue) % 8 == 0 &&
              sizeof(core::Group) % 8 == 0);

Lanes* shared = nullptr;

void attach(void* memory) {
  shared = static_cast<Lanes*>(memory);
  shared->lock.init();
}

constexpr pg::Segment kSegment = {
    .name = "jobq lanes", .size = [] { return Layout().buckets.end(); }, .attach = attach};

core::Touches& touches() {
  static auto* touches = new core::Touches;
  return *touches;
}

bool is_copying = false;

void end_copy(bool is_committed) {
  if (!is_copying) return;
  is_copying = false;
  in_lanes([is_committed](core::LaneTable& table) {
    if (is_committed) table.copied(pg::my_database());
    table.end_copy();
  });
}

void at_commit() {
  for (core::Touch& touch : touches())
    in_lanes([&](core::LaneTable& table) { table.commit(touch); });
  touches().clear();
  end_copy(true);
}

void at_abort() {
  for (core::Touch& touch : touches())
    in_lanes([&](core::LaneTable& table) { table.abort(touch); });
  touches().clear();
  end_copy(false);
}

// The level that is lost is not asked for: to lower too far is safe.
void at_level_lost(int) {
  for (const core::Touch& touch : touches())
    in_lanes([&](core::LaneTable& table) { table.abort_subtransaction(touch); });
}

constexpr pg::Endings kEndings = {.committed = at_commit,
                                  .aborted = at_abort,
                                  .level_kept = [](int) {},
                                  .level_lost = at_level_lost};

} // namespace

void request_lanes() { pg::request_segment(kSegment); }

void watch_lanes() { pg::watch_endings(kEndings); }

pg::SharedLock& lanes_lock() { return shared->lock; }

core::LaneTable lanes() {
  static const Layout layout;
  return {shared->common, layout.slots.of(shared), layout.buckets.of(shared),
          layout.queues.of(shared), layout.groups.of(shared)};
}

// A clock that is far off must leave tags to be given.
core::Tag lane_clock() {
  constexpr core::Microseconds kLast = core::kNoTag / 1000 / 8 * 7;
  return std::clamp<core::Microseconds>(pg::now(), 1, kLast) * 1000;
}

core::QueueName queue_name(std::int64_t queue_id) {
  return {.database = pg::my_database(), .queue_id = queue_id};
}

core::Touch& touch_of(std::int64_t queue_id, std::int32_t priority) {
  return touches().of({.queue = queue_name(queue_id), .priority = priority});
}

void begin_copy_into_lanes() {
  if (is_copying) return;
  pg::note_write();
  in_lanes([](core::LaneTable& table) { table.begin_copy(); });
  is_copying = true;
}

void forget_lanes(std::uint32_t database) {
  in_lanes([database](core::LaneTable& table) { table.forget(database); });
}

} // namespace jobq::queue
