#include "worker/launcher.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/upkeep.hpp"
#include "pg/background.hpp"
#include "pg/clock.hpp"
#include "pg/command.hpp"
#include "pg/databases.hpp"
#include "pg/ending.hpp"
#include "pg/extension.hpp"
#include "pg/log.hpp"
#include "pg/session.hpp"
#include "pg/turn.hpp"
#include "queue/agenda.hpp"
#include "queue/doors.hpp"
#include "queue/lanes.hpp"
#include "settings.hpp"
#include "worker/manager.hpp"
#include "worker/roster.hpp"
#include "worker/troubles.hpp"

namespace jobq::worker {

namespace {

constexpr pg::WorkerKind kLauncher = {.type = "jobq launcher", .main = "jobq_launcher_main"};
constexpr core::Microseconds kNever = -core::kForever / 2;
constexpr core::Microseconds kFirstPlaceRetry = core::kSecond / 5;
constexpr core::Microseconds kPlaceRetry = 5 * core::kSecond;
constexpr core::Microseconds kLongestStart = 60 * core::kSecond;

struct Database {
  std::string name;
  core::Upkeep upkeep;
  std::optional<pg::StartedWorker> worker; // while it is starting
};

using State = core::Upkeep::State;

class Launcher {
 public:
  // Does what there is to do; returns how long it may sleep.
  core::Microseconds work(core::Microseconds now) {
    hear_wishes(now);
    if (looked_at_ == kNever)
      return until_next(now); // a database that we do not know is not a gone one
    hear_reports(now);
    see_failed_starts(now);
    if (settings::enabled) start_one(now);
    return until_next(now);
  }

 private:
  // Wishes that come while no look succeeds are not kept one by one: then all databases are asked
  // after the next one that does.
  void hear_wishes(core::Microseconds now) {
    Wishes wishes = take_wishes();
    is_round_due_ |= wishes.is_too_many || now >= next_round();
    is_look_due_ |= wishes.is_look_round || is_round_due_;
    for (std::uint32_t oid : wishes.databases) is_look_due_ |= !databases_.contains(oid);
    if (is_look_due_ && now >= next_look_try_) look_round(now);
    if (is_look_due_) {
      is_round_due_ = true;
      return;
    }
    for (auto& [oid, database] : databases_)
      if (is_round_due_ || is_listed(wishes, oid)) database.upkeep.ask();
    is_round_due_ = false;
  }

  core::Microseconds next_round() const {
    return looked_at_ + std::int64_t{settings::database_scan_interval} * core::kSecond;
  }

  static bool is_listed(const Wishes& wishes, std::uint32_t oid) {
    return std::find(wishes.databases.begin(), wishes.databases.end(), oid) !=
           wishes.databases.end();
  }

  // Databases that are gone, or that are to be left alone from now on, lose their manager.
  void look_round(core::Microseconds now) {
    std::vector<pg::Database> there;
    std::optional<pg::Error> error =
        pg::in_turn("looking for databases", [&] { there = pg::list_databases(); });
    if (error) {
      next_look_try_ = now + troubles_.meet(*error, "jobq launcher: cannot list the databases");
      return;
    }
    troubles_.end();
    is_look_due_ = false;
    looked_at_ = now;
    std::map<std::uint32_t, Database> kept;
    for (pg::Database& database : there) {
      auto known = databases_.extract(database.oid);
      Database& entry =
          known.empty() ? kept[database.oid] : kept.insert(std::move(known)).position->second;
      entry.name = database.name;
    }
    databases_ = std::move(kept);
  }

  void hear_reports(core::Microseconds now) {
    for (const PlaceReport& report : collect_reports()) {
      auto found = databases_.find(report.database);
      if (found != databases_.end()) {
        hear(found->second, report, now);
      } else {
        dismiss(report.database);
        close_place(report.database); // if nobody is in it
      }
    }
  }

  static void hear(Database& database, const PlaceReport& report, core::Microseconds now) {
    core::Upkeep& upkeep = database.upkeep;
    if (report.process_id != 0) {
      database.worker.reset();
      if (upkeep.state() != State::up) upkeep.note_up();
      return;
    }
    if (report.word == Word::none) return;
    database.worker.reset();
    if (report.word == Word::absent) upkeep.note_absence();
    if (report.word == Word::leave) upkeep.note_leave();
    if (report.word == Word::failure) upkeep.note_failure(now);
  }

  // The server could not make the process, or it ended before it came in; or it came in when its
  // place had been closed.
  void see_failed_starts(core::Microseconds now) {
    for (auto& [oid, database] : databases_) {
      if (database.upkeep.state() != State::starting) continue;
      bool is_stopped =
          database.worker && database.worker->state() == pg::StartedWorker::State::stopped;
      if (!is_stopped && now - database.upkeep.started_at() < kLongestStart) continue;
      close_place(oid);
      database.worker.reset();
      database.upkeep.note_failure(now);
    }
  }

  // One at a time, so that looking into many databases needs one place in the server.
  void start_one(core::Microseconds now) {
    for (auto& [oid, database] : databases_)
      if (database.upkeep.state() == State::starting) return;
    if (now < next_place_try_) return;
    for (auto& [oid, database] : databases_) {
      if (!database.upkeep.is_due(now)) continue;
      std::optional<std::uint64_t> ticket = open_place(oid);
      if (!ticket && has_wishes()) return; // they come first
      if (!ticket) {
        if (!is_held(oid)) next_place_try_ = now + kPlaceRetry;
        continue;
      }
      start(oid, database, *ticket, now);
      return;
    }
  }

  void start(std::uint32_t oid, Database& database, std::uint64_t ticket, core::Microseconds now) {
    database.worker = pg::start_worker(kManager, {.database = oid, .ticket = ticket});
    if (!database.worker) {
      close_place(oid);
      lack_place(database, now);
      return;
    }
    lacks_ = 0;
    database.upkeep.note_start(now);
  }

  // The place of a process that has just ended is free a moment later, so the first lack says
  // nothing.
  void lack_place(const Database& database, core::Microseconds now) {
    next_place_try_ = now + (lacks_++ == 0 ? kFirstPlaceRetry : kPlaceRetry);
    if (lacks_ == 1 || now < next_lack_news_) return;
    next_lack_news_ = now + core::kHour;
    pg::log_now("jobq launcher: no free background worker slot for database \"" + database.name +
                "\"" + others(now) + "; raise max_worker_processes and restart the server");
  }

  std::string others(core::Microseconds now) const {
    auto count = std::count_if(databases_.begin(), databases_.end(), [now](const auto& entry) {
      return entry.second.upkeep.is_due(now);
    });
    return count > 1 ? " and " + std::to_string(count - 1) + " others" : "";
  }

  // What came while a lock was waited for has set the latch in vain: it is looked for here, right
  // before the sleep. While a manager is starting no other one will be: it wakes us.
  core::Microseconds until_next(core::Microseconds now) const {
    if (has_wishes() && now >= next_look_try_) return 0;
    core::Microseconds next = std::max(is_look_due_ ? now : next_round(), next_look_try_);
    bool is_starting = false;
    core::Microseconds next_start = core::kForever;
    for (const auto& [oid, database] : databases_) {
      const core::Upkeep& upkeep = database.upkeep;
      is_starting |= upkeep.state() == State::starting;
      if (upkeep.state() == State::starting)
        next = std::min(next, upkeep.started_at() + kLongestStart);
      if (upkeep.state() == State::wanted && !is_held(oid))
        next_start = std::min(next_start, std::max(upkeep.try_at(), next_place_try_));
    }
    if (settings::enabled && !is_starting) next = std::min(next, next_start);
    return std::max<core::Microseconds>(next - now, 0);
  }

  std::map<std::uint32_t, Database> databases_;
  core::Microseconds looked_at_ = kNever;
  core::Microseconds next_look_try_ = 0;
  core::Microseconds next_place_try_ = 0;
  core::Microseconds next_lack_news_ = 0;
  int lacks_ = 0; // in a row
  bool is_look_due_ = true;
  bool is_round_due_ = true;
  Troubles troubles_; // with the list of databases
};

void run() {
  pg::connect_to_no_database();
  pg::fix_setting("lock_timeout", "1s");
  become_launcher();
  pg::log_now("jobq launcher started");
  Launcher launcher;
  for (;;)
    pg::in_round([&] {
      if (pg::is_asked_to_leave()) pg::leave_to_be_restarted();
      pg::rest(launcher.work(pg::monotonic_now()), "JobqLauncher");
    });
}

// In the sessions: what the transaction at hand will have to tell the launcher.
bool has_extension_change = false;
bool has_database_change = false;

void tell() {
  if (has_extension_change) queue::forget_lanes(pg::my_database());
  if (has_extension_change) queue::knock_everywhere();
  if (has_extension_change && !queue::tell_of_change()) ask_for(pg::my_database());
  if (has_database_change) ask_for_look_round();
}

// What a session holds it lets go when the command's fate is known, and not before: the launcher
// must see what has become of the database.
void end() {
  has_extension_change = has_database_change = false;
  release();
}

// What comes to have its number, or its name, has lanes of its own.
void hold_and_forget(Oid database) {
  hold(database);
  queue::forget_lanes(database);
}

constexpr pg::Endings kEndings = {.committed =
                                      [] {
                                        tell();
                                        end();
                                      },
                                  .aborted = end,
                                  .level_kept = [](int) {},
                                  .level_lost = [](int) {}};

constexpr pg::DatabaseWatch kDatabaseWatch = {.hold = hold_and_forget,
                                              .changed = [] { has_database_change = true; }};

} // namespace

void register_launcher() {
  pg::watch_endings(kEndings);
  pg::on_extension_change([] { has_extension_change = true; });
  pg::on_database_command(kDatabaseWatch);
  if (!pg::is_binary_upgrade()) pg::register_worker(kLauncher);
}

JOBQ_WORKER(jobq_launcher_main, run)

} // namespace jobq::worker
