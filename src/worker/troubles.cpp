#include "worker/troubles.hpp"

#include <algorithm>

#include "pg/background.hpp"
#include "pg/clock.hpp"
#include "pg/log.hpp"

namespace jobq::worker {

namespace {

constexpr int kMostDoublings = 5; // 32 s

} // namespace

core::Microseconds Troubles::meet(const pg::Error& error, const std::string& what) {
  if (!pg::is_asked_to_leave() && is_news(error))
    pg::log_now(what + ": " + error.message() + " (" + error.sqlstate_text() + ")");
  return wait_after(error);
}

core::Microseconds Troubles::wait_after(const pg::Error& error) {
  if (error.sqlstate() == ERRCODE_LOCK_NOT_AVAILABLE) return core::kSecond;
  return core::kSecond << std::min(failures_++, kMostDoublings);
}

bool Troubles::is_news(const pg::Error& error) {
  core::Microseconds now = pg::monotonic_now();
  if (said_ == error.sqlstate() && now - said_at_ < core::kHour) return false;
  said_ = error.sqlstate();
  said_at_ = now;
  return true;
}

void Troubles::end() {
  failures_ = 0;
  said_ = 0;
}

} // namespace jobq::worker
