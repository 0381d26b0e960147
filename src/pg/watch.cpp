#include "pg/watch.hpp"

#include <type_traits>

#include "pg/clock.hpp"

namespace jobq::pg {

namespace {

struct SharedWatch {
  slock_t lock;
  core::Watch watch; // held by lock
};
static_assert(std::is_trivially_copyable_v<SharedWatch>);

SharedWatch* shared = nullptr;
shmem_request_hook_type next_request_hook = nullptr;
shmem_startup_hook_type next_startup_hook = nullptr;

void request() {
  if (next_request_hook != nullptr) next_request_hook();
  RequestAddinShmemSpace(sizeof(SharedWatch));
}

void start() {
  if (next_startup_hook != nullptr) next_startup_hook();
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  bool found = false;
  shared = static_cast<SharedWatch*>(ShmemInitStruct("jobq watch", sizeof(SharedWatch), &found));
  if (!found) {
    SpinLockInit(&shared->lock);
    shared->watch = {};
  }
  LWLockRelease(AddinShmemInitLock);
}

} // namespace

void request_watch() {
  next_request_hook = shmem_request_hook;
  shmem_request_hook = request;
  next_startup_hook = shmem_startup_hook;
  shmem_startup_hook = start;
}

core::Watch look_at_clocks() {
  core::ClockReading now = read_clocks();
  SpinLockAcquire(&shared->lock);
  shared->watch = core::observe(shared->watch, now);
  core::Watch watch = shared->watch;
  SpinLockRelease(&shared->lock);
  return watch;
}

} // namespace jobq::pg
