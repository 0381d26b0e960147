#include "pg/watch.hpp"

#include <type_traits>

#include "pg/clock.hpp"
#include "pg/shared_memory.hpp"

namespace jobq::pg {

namespace {

struct SharedWatch {
  slock_t lock;
  core::Watch watch; // held by lock
};
static_assert(std::is_trivially_copyable_v<SharedWatch>);

SharedWatch* shared = nullptr;

void attach(void* memory) {
  shared = static_cast<SharedWatch*>(memory);
  SpinLockInit(&shared->lock);
}

constexpr Segment kSegment = {
    .name = "jobq watch", .size = [] { return sizeof(SharedWatch); }, .attach = attach};

} // namespace

void request_watch() { request_segment(kSegment); }

core::Watch look_at_clocks() {
  core::ClockReading now = read_clocks();
  SpinLockAcquire(&shared->lock);
  shared->watch = core::observe(shared->watch, now);
  core::Watch watch = shared->watch;
  SpinLockRelease(&shared->lock);
  return watch;
}

} // namespace jobq::pg
