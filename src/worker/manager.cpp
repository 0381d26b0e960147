#include "worker/manager.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "pg/clock.hpp"
#include "pg/error.hpp"
#include "pg/extension.hpp"
#include "pg/log.hpp"
#include "pg/turn.hpp"
#include "pg/watch.hpp"
#include "queue/agenda.hpp"
#include "settings.hpp"
#include "worker/caller.hpp"
#include "worker/chores.hpp"
#include "worker/executor_keeper.hpp"
#include "worker/lane_keeper.hpp"
#include "worker/roster.hpp"
#include "worker/schedule_keeper.hpp"
#include "worker/step.hpp"

namespace jobq::worker {

namespace {

using queue::Chore;

// However sure we are of what is next: what somebody put into the tables by hand is found.
constexpr core::Microseconds kReread = 60 * core::kSecond;
// That look walks over all rows that are gone and that an old snapshot may still see: of the time,
// it may take this part.
constexpr core::Microseconds kRereadShare = 100;
constexpr core::Microseconds kSecondLook = core::kSecond;

class Manager {
 public:
  // Does what is due; returns how long it may rest.
  core::Microseconds work() {
    if (!has_settings_) fix_settings();
    has_settings_ = true;
    bool has_changed = queue::take_change();
    if (has_changed) reread_at_ = 0; // its tables may be others
    if (!fitness_ || has_changed) look_at_extension();
    if (fitness_ != pg::Fitness::fits || is_to_pause()) return kSecondLook;
    pg::look_at_clocks();
    do_chores();
    if (caller_.is_due(pg::monotonic_now())) caller_.work();
    schedules_.look_at_clock();
    if (schedules_.is_due(pg::monotonic_now())) schedules_.work();
    if (executors_.is_due(pg::monotonic_now())) executors_.work();
    if (lanes_.is_due(pg::monotonic_now())) lanes_.work();
    queue::note_sweep(pg::now());
    return until_next();
  }

  // Whoever changed the settings may have mended what failed.
  void forgive() {
    for (ChoreKeeper& chore : chores_) chore.forgive();
    caller_.forgive();
    schedules_.forgive();
    executors_.forgive();
    lanes_.forgive();
  }

 private:
  // If somebody holds a lock on the extension, what it is shows later.
  void look_at_extension() {
    std::string database;
    fitness_.reset();
    pg::in_turn("looking at the extension", [&] {
      fitness_ = pg::lock_extension().fitness;
      database = pg::my_database_name();
    });
    if (fitness_ == pg::Fitness::absent) return leave_if_nobody_made_it();
    if (!fitness_ || std::exchange(announced_, fitness_) == fitness_) return;
    say(Word::here);
    if (fitness_ == pg::Fitness::fits)
      pg::log_now("jobq manager started for database \"" + database + "\"");
    else
      pg::log_now("jobq manager: the extension in database \"" + database +
                  "\" does not have the library's version " JOBQ_VERSION
                  "; nothing is done until one of them is updated");
  }

  void leave_if_nobody_made_it() {
    fitness_.reset();
    if (!queue::step_down()) return;
    say(Word::absent);
    pg::leave_quietly();
  }

  bool is_to_pause() {
    bool was_pausing = std::exchange(is_pausing_, pg::is_read_only());
    if (is_pausing_ && !was_pausing)
      pg::log_now("jobq manager: default_transaction_read_only is on; nothing is done until it is "
                  "off");
    return is_pausing_;
  }

  void do_chores() {
    core::Microseconds start = pg::monotonic_now();
    bool rereads = start >= reread_at_;
    if (rereads) forget();
    for (ChoreKeeper& chore : chores_)
      if (chore.is_due(pg::monotonic_now())) chore.work();
    if (rereads)
      reread_at_ = start + std::max(kReread, kRereadShare * (pg::monotonic_now() - start));
  }

  void forget() {
    for (ChoreKeeper& chore : chores_) chore.look_again();
    queue::unread_marks();
    schedules_.look_again();
    executors_.look_again();
    lanes_.look_again();
  }

  // All that may have set the latch while a step waited for a lock, which resets it, is looked at
  // here, right before the rest.
  core::Microseconds until_next() const {
    if (queue::has_change()) return 0;
    core::Microseconds now = pg::monotonic_now();
    core::Microseconds next = settings::longest_rest();
    for (const ChoreKeeper& chore : chores_) next = std::min(next, chore.wait_at(now));
    return std::min({next, caller_.wait_at(now), schedules_.wait_at(now), executors_.wait_at(now),
                     lanes_.wait_at(now)});
  }

  std::array<ChoreKeeper, queue::kSweptCount> chores_ = {
      ChoreKeeper(Chore::promote), ChoreKeeper(Chore::rescue), ChoreKeeper(Chore::prune)};
  Caller caller_;
  ScheduleKeeper schedules_;
  ExecutorKeeper executors_;
  LaneKeeper lanes_;
  bool has_settings_ = false;
  bool is_pausing_ = false;
  std::optional<pg::Fitness> fitness_; // nothing: not known
  std::optional<pg::Fitness> announced_;
  core::Microseconds reread_at_ = 0;
};

[[noreturn]] void leave() {
  say(Word::leave);
  pg::leave_quietly();
}

// False: somebody needs the database and has asked us to leave while we connected.
bool connect() {
  try {
    pg::connect_to_database(pg::my_start_database());
    return true;
  } catch (const pg::Error&) {
    if (!pg::is_asked_to_leave()) throw;
    return false;
  }
}

void run() {
  if (!come_in(pg::my_start_database(), pg::my_ticket())) pg::leave_quietly();
  if (!connect()) leave();
  queue::take_over(pg::now());
  Manager manager;
  for (;;)
    pg::in_round([&] {
      if (pg::is_asked_to_leave() || !settings::enabled) leave();
      core::Microseconds rest = manager.work();
      if (!pg::is_asked_to_leave() && pg::rest(rest, "JobqManager")) manager.forgive();
    });
}

} // namespace

JOBQ_WORKER(jobq_manager_main, run)

} // namespace jobq::worker
