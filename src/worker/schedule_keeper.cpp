#include "worker/schedule_keeper.hpp"

#include <algorithm>
#include <limits>

#include "pg/clock.hpp"
#include "pg/log.hpp"
#include "queue/agenda.hpp"
#include "schedule/runs.hpp"
#include "settings.hpp"
#include "worker/step.hpp"

namespace jobq::worker {

namespace {

using queue::Chore;

constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::min();
// What a clock that is slewed, not set, never loses between two looks.
constexpr core::Microseconds kStepBack = core::kSecond / 10;

} // namespace

// While a restore is under way, what became of the instants may not be there yet.
core::Microseconds ScheduleKeeper::wait_at(core::Microseconds now) const {
  core::Microseconds restored_at =
      queue::last_copy() == 0 ? 0 : queue::last_copy() + settings::grace();
  core::Microseconds ahead = core::kForever;
  core::Microseconds mark = queue::mark_of(Chore::fire);
  if (mark != core::kForever) ahead = mark - pg::now();
  if (second_look_at_) ahead = std::min(ahead, *second_look_at_ - now);
  if (checked_ || is_to_prune_) ahead = 0;
  if (ahead == core::kForever) return ahead;
  return std::max({ahead, std::max(not_before_, restored_at) - now, core::Microseconds{0}});
}

void ScheduleKeeper::look_again() {
  checked_ = kBeforeAll;
  is_to_prune_ = true;
}

void ScheduleKeeper::look_at_clock() {
  core::Microseconds offset = pg::now() - pg::monotonic_now();
  if (offset_ != 0 && offset < offset_ - kStepBack) checked_ = kBeforeAll;
  offset_ = offset;
}

void ScheduleKeeper::work() {
  bool is_mark_due = queue::mark_of(Chore::fire) <= pg::now();
  core::Microseconds now = pg::monotonic_now();
  if (is_mark_due || (second_look_at_ && *second_look_at_ <= now)) fire();
  if (not_before_ > now) return; // it has failed
  if (checked_)
    check();
  else if (is_to_prune_)
    prune();
}

// True: it has failed, and is to wait.
bool ScheduleKeeper::fail(const std::optional<pg::Error>& error) {
  if (!error) {
    troubles_.end();
    not_before_ = 0;
    return false;
  }
  not_before_ = pg::monotonic_now() + troubles_.meet(*error, "jobq manager: cannot fire schedules");
  return true;
}

void ScheduleKeeper::tell_of_rest(bool is_home) {
  if (was_home_ && !is_home)
    pg::log_now("jobq manager: the schedules of this database rest, since they came here by a "
                "restored dump or a clone; SELECT jobq.adopt() lets them run here");
  was_home_ = is_home;
}

void ScheduleKeeper::fire() {
  if (second_look_at_ && *second_look_at_ <= pg::monotonic_now()) {
    second_look_at_.reset();
    passed_.waiting.clear();
  }
  const core::Mark before = queue::begin_reading(Chore::fire);
  schedule::Fired fired;
  std::optional<pg::Error> error = step("firing schedules", [&] {
    fired = schedule::fire_page(schedule::read_clock(), before.low.instant, passed_);
  });
  if (fail(error)) return queue::give_up_reading(Chore::fire, before);
  queue::end_reading(Chore::fire, fired.next.value_or(core::kForever),
                     {.instant = fired.lowest.value_or(core::kForever)});
  tell_of_rest(fired.is_home);
  if (fired.is_any_left && !second_look_at_)
    second_look_at_ = pg::monotonic_now() + std::min(settings::longest_rest(), core::kSecond);
}

void ScheduleKeeper::check() {
  std::optional<std::int64_t> next;
  std::optional<pg::Error> error = step("looking at schedules", [&] {
    next = schedule::check_page(schedule::read_clock(), *checked_);
  });
  if (!fail(error)) checked_ = next;
}

void ScheduleKeeper::prune() {
  bool is_more = false;
  std::optional<pg::Error> error =
      step("pruning runs of schedules", [&] { is_more = schedule::prune_runs(pg::now()); });
  if (!fail(error)) is_to_prune_ = is_more;
}

} // namespace jobq::worker
