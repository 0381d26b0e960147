// Preloaded into a server, it moves the server's wall clock by as many nanoseconds as stand in the
// file that WALL_CLOCK names, from the moment on when they are written there. The monotonic clock
// stays real, and with it every sleep.
//
// Not libfaketime: that shows the real time to signal handlers that interrupt a select(), and for
// ever to what is forked in one, which in PostgreSQL up to 15 is every background worker. And it
// opens the file anew at each look, which no handler may do.
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

const volatile std::int64_t* offset = nullptr;

__attribute__((constructor)) void map_offset() {
  const char* name = std::getenv("WALL_CLOCK");
  int file = name == nullptr ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void* place = mmap(nullptr, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (place != MAP_FAILED) offset = static_cast<std::int64_t*>(place);
}

bool is_wall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

} // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (syscall(SYS_clock_gettime, clock, time) != 0) return -1;
  if (!is_wall(clock) || offset == nullptr) return 0;
  std::int64_t moved = time->tv_sec * kSecond + time->tv_nsec + *offset;
  *time = {.tv_sec = moved / kSecond, .tv_nsec = moved % kSecond};
  return 0;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* place) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (place != nullptr) *place = now.tv_sec;
  return now.tv_sec;
}
}
