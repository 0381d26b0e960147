#include "pg/shared_memory.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

constexpr const char* kTranche = "jobq";
constexpr std::size_t kMostSegments = 8;

std::array<Segment, kMostSegments> segments;
std::size_t segment_count = 0;
int tranche = 0;
shmem_request_hook_type next_request_hook = nullptr;
shmem_startup_hook_type next_startup_hook = nullptr;

void request() {
  if (next_request_hook != nullptr) next_request_hook();
  for (std::size_t i = 0; i < segment_count; ++i) RequestAddinShmemSpace(segments[i].size());
  RequestNamedLWLockTranche(kTranche, 1);
}

void attach(const Segment& segment) {
  bool is_there = false;
  std::size_t size = segment.size();
  void* memory = ShmemInitStruct(segment.name, size, &is_there);
  if (!is_there) std::memset(memory, 0, size);
  segment.attach(memory);
}

void start() {
  if (next_startup_hook != nullptr) next_startup_hook();
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  tranche = GetNamedLWLockTranche(kTranche)->lock.tranche;
  for (std::size_t i = 0; i < segment_count; ++i) attach(segments[i]);
  LWLockRelease(AddinShmemInitLock);
}

void relay(int, Datum leave) { reinterpret_cast<void (*)()>(leave)(); }

void register_exit(void (*leave)()) { before_shmem_exit(relay, reinterpret_cast<Datum>(leave)); }

constexpr std::size_t kMostLeavers = 8;
std::array<void (*)(), kMostLeavers> leavers;
std::size_t leaver_count = 0;

} // namespace

void request_segment(const Segment& segment) {
  if (segment_count == 0) {
    next_request_hook = shmem_request_hook;
    shmem_request_hook = request;
    next_startup_hook = shmem_startup_hook;
    shmem_startup_hook = start;
  }
  segments.at(segment_count++) = segment;
}

void SharedLock::init() { LWLockInitialize(&lock_, tranche); }

void at_exit(void (*leave)()) {
  auto end = leavers.begin() + leaver_count;
  if (std::find(leavers.begin(), end, leave) != end) return;
  guarded<register_exit>(leave);
  leavers.at(leaver_count++) = leave;
}

} // namespace jobq::pg
