#include "pg/sleep.hpp"

#include <algorithm>

#include "pg/compat.hpp"
#include "pg/error.hpp"

extern "C" {
// Its header needs those of the libraries for encryption.
bool pq_check_connection(void);
}

namespace jobq::pg {

namespace {

void sleep_leaf(long milliseconds, const char* reason) {
  WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, milliseconds,
            wait_event(reason));
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

void check_client() {
  if (MyProcPort == nullptr || pq_check_connection()) return;
  ClientConnectionLost = true;
  InterruptPending = true;
  CHECK_FOR_INTERRUPTS();
}

} // namespace

void sleep(core::Microseconds longest, const char* reason) {
  constexpr core::Microseconds kMillisecond = 1000;
  core::Microseconds most = std::clamp<core::Microseconds>(longest, 0, core::kHour);
  guarded<sleep_leaf>(static_cast<long>((most + kMillisecond - 1) / kMillisecond), reason);
}

void wake_process(int process) { SetLatch(&GetPGProcByNumber(process)->procLatch); }

void require_client() { guarded<check_client>(); }

} // namespace jobq::pg
