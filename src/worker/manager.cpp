#include "worker/manager.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/pace.hpp"
#include "pg/clock.hpp"
#include "pg/error.hpp"
#include "pg/extension.hpp"
#include "pg/log.hpp"
#include "pg/notify.hpp"
#include "pg/owner.hpp"
#include "pg/session.hpp"
#include "pg/statement.hpp"
#include "pg/transaction.hpp"
#include "pg/turn.hpp"
#include "pg/watch.hpp"
#include "queue/agenda.hpp"
#include "queue/sweep.hpp"
#include "settings.hpp"
#include "worker/roster.hpp"
#include "worker/troubles.hpp"

namespace jobq::worker {

namespace {

using queue::Chore;

constexpr const char* kChannel = "jobq";
constexpr std::int64_t kPage = 1000;

// Between two steps of a chore whose rows keep coming, so that they are done together.
constexpr core::Microseconds kGathering = core::kSecond / 100;
// Between two rounds of calls, but for a few after a silence.
constexpr core::Microseconds kCallInterval = core::kSecond / 20;
constexpr int kCallBurst = 4;
// However sure we are of what is next: what somebody put into the tables by hand is found.
constexpr core::Microseconds kReread = 60 * core::kSecond;
constexpr core::Microseconds kSecondLook = core::kSecond;
constexpr std::size_t kMostPassed = 10'000;

constinit pg::Statement
    select_names("SELECT name FROM jobq.queue WHERE queue_id OPERATOR(pg_catalog.=) ANY ($1)"
                 " OR (0 OPERATOR(pg_catalog.=) ANY ($1)"
                 " AND name OPERATOR(pg_catalog.=) 'default')");
constinit pg::Statement select_all_names("SELECT name FROM jobq.queue");

// default_transaction_read_only is respected where the server as a whole has it.
constinit pg::Statement read_only_of_server(
    "SELECT source OPERATOR(pg_catalog.=) ANY (ARRAY['default', 'configuration file',"
    " 'command line']) FROM pg_catalog.pg_settings"
    " WHERE name OPERATOR(pg_catalog.=) 'default_transaction_read_only'");

core::Microseconds monotonic() { return pg::read_clocks().monotonic; }

// The settings of a database are for its clients.
void fix_settings() {
  constexpr std::pair<const char*, const char*> kFixed[] = {
      {"search_path", "pg_catalog, pg_temp"},
      {"default_transaction_isolation", "read committed"},
      {"default_transaction_deferrable", "off"},
      {"synchronous_commit", "local"},
      {"lock_timeout", "100ms"},
      {"statement_timeout", "0"},
      {"idle_in_transaction_session_timeout", "0"},
      {"idle_session_timeout", "0"},
      {"transaction_timeout", "0"},
      {"row_security", "on"},
      {"session_replication_role", "origin"}};
  for (auto [name, value] : kFixed) pg::fix_setting(name, value);
  std::optional<pg::Error> error = pg::in_turn("looking at the settings", [] {
    if (!read_only_of_server.run_freely({}).boolean(0, 0))
      pg::fix_setting("default_transaction_read_only", "off");
  });
  if (error) throw pg::Error(*error);
}

// What a step needs before it touches a table: in DROP EXTENSION's order of locks.
template <typename Body>
std::optional<pg::Error> step(const char* what, Body body) {
  return pg::in_turn(what, [&] {
    pg::Extension extension = pg::lock_extension();
    if (extension.fitness != pg::Fitness::fits) {
      queue::tell_of_change();
      return;
    }
    const pg::OwnerRights rights(extension.owner);
    pg::require_writable_transaction();
    body();
  });
}

class ChoreKeeper {
 public:
  explicit ChoreKeeper(Chore chore) : chore_(chore) {}

  bool is_due(core::Microseconds now) const {
    return now >= not_before_ && queue::mark_of(chore_) <= pg::now();
  }

  // How long until it is due, as far as is known.
  core::Microseconds wait_at(core::Microseconds now) const {
    core::Microseconds mark = queue::mark_of(chore_);
    if (mark == core::kForever) return core::kForever;
    return std::max({mark - pg::now(), not_before_ - now, core::Microseconds{0}});
  }

  void work() {
    core::Microseconds mark = queue::mark_of(chore_);
    queue::begin_reading(chore_);
    queue::Page page;
    core::Microseconds left = mark;
    std::optional<pg::Error> error = step(queue::verb_of(chore_), [&] {
      page = queue::sweep_page(chore_, kPage, passed_);
      if (page.is_last) left = queue::next_instant(chore_, passed_);
    });
    queue::end_reading(chore_, error ? mark : left);
    if (error)
      fail(*error);
    else
      succeed(page);
  }

  void forgive() { not_before_ = 0; }

  // Jobs that were passed over are tried again.
  void look_again() {
    passed_.clear();
    if (complained_.size() > kMostPassed) complained_.clear();
  }

 private:
  void fail(const pg::Error& error) {
    if (pg::is_asked_to_leave()) return;
    not_before_ = monotonic() + troubles_.wait_after(error);
    if (troubles_.is_news(error))
      pg::log_now("jobq manager: cannot " + std::string(queue::verb_of(chore_)) +
                  " jobs: " + describe(error));
  }

  // Rows that are due but that nobody may take now (another has them, their lease is in grace) are
  // looked at again after a while.
  void succeed(const queue::Page& page) {
    troubles_.end();
    for (const queue::BadJob& bad : page.bad)
      if (complained_.insert(bad.job_id).second)
        pg::log_now("jobq manager: cannot " + std::string(queue::verb_of(chore_)) + " job " +
                    std::to_string(bad.job_id) + ": " + bad.error + "; it stays where it is");
    if (passed_.size() > kMostPassed) passed_.clear();
    core::Microseconds now = monotonic();
    if (!page.is_last)
      not_before_ = 0;
    else if (queue::mark_of(chore_) <= pg::now() && page.found == 0)
      not_before_ = now + sweep_interval();
    else
      not_before_ = now + kGathering;
  }

  static core::Microseconds sweep_interval() {
    return std::int64_t{settings::sweep_interval} * 1000;
  }

  Chore chore_;
  core::Microseconds not_before_ = 0;
  Troubles troubles_;
  std::vector<std::int64_t> passed_;
  std::set<std::int64_t> complained_;
};

// Tells those who LISTEN of the queues that were hungry.
class Caller {
 public:
  // While it is quiet, calls come without waking anybody.
  core::Microseconds wait_at(core::Microseconds now) const {
    if (queue::has_calls()) return std::max(pace_.wait_at(now), not_before_ - now);
    return quiet_until_ > now ? quiet_until_ - now : core::kForever;
  }
  bool is_due(core::Microseconds now) const { return queue::has_calls() && wait_at(now) <= 0; }

  void work() {
    core::Microseconds now = monotonic();
    pace_.note(now);
    quiet_until_ = now + pace_.wait_at(now);
    queue::be_quiet_until(quiet_until_);
    queue::Calls calls = queue::take_calls();
    std::optional<pg::Error> error = step("notify", [&] {
      pg::make_commit_lazy();
      pg::Rows names = calls.is_all ? select_all_names.run_freely({})
                                    : select_names.run_freely({pg::int8_array(calls.queue_ids)});
      for (std::uint64_t row = 0; row < names.size(); ++row)
        pg::notify(kChannel, std::string(names.text(row, 0)));
    });
    if (!error) {
      troubles_.end();
      return;
    }
    if (pg::is_asked_to_leave()) return;
    queue::call_again(calls);
    not_before_ = monotonic() + troubles_.wait_after(*error);
    if (troubles_.is_news(*error))
      pg::log_now("jobq manager: cannot notify listeners: " + describe(*error));
  }

  void forgive() { not_before_ = 0; }

 private:
  core::Pace pace_{kCallInterval, kCallBurst};
  core::Microseconds quiet_until_ = 0;
  core::Microseconds not_before_ = 0;
  Troubles troubles_;
};

class Manager {
 public:
  // Does what is due; returns how long it may rest.
  core::Microseconds work() {
    if (!has_settings_) fix_settings();
    has_settings_ = true;
    if (!fitness_ || queue::take_change()) look_at_extension();
    if (fitness_ != pg::Fitness::fits) return kSecondLook;
    pg::look_at_clocks();
    reread();
    for (ChoreKeeper& chore : chores_)
      if (chore.is_due(monotonic())) chore.work();
    if (caller_.is_due(monotonic())) caller_.work();
    queue::note_sweep(pg::now());
    return until_next();
  }

  // Whoever changed the settings may have mended what failed.
  void forgive() {
    for (ChoreKeeper& chore : chores_) chore.forgive();
    caller_.forgive();
  }

 private:
  // If somebody holds a lock on the extension, what it is shows later.
  void look_at_extension() {
    std::optional<pg::Fitness> before = std::exchange(fitness_, std::nullopt);
    std::string database;
    pg::in_turn("looking at the extension", [&] {
      fitness_ = pg::lock_extension().fitness;
      database = pg::my_database_name();
    });
    if (!fitness_ || fitness_ == before) return;
    switch (*fitness_) {
    case pg::Fitness::absent:
      if (!queue::step_down()) return fitness_.reset();
      say(Word::absent);
      pg::leave_quietly();
    case pg::Fitness::fits:
      say(Word::here);
      return pg::log_now("jobq manager started for database \"" + database + "\"");
    case pg::Fitness::other_version:
      say(Word::here);
      return pg::log_now("jobq manager: the extension in database \"" + database +
                         "\" does not have the library's version " JOBQ_VERSION
                         "; nothing is done until ALTER EXTENSION jobq UPDATE");
    }
  }

  void reread() {
    core::Microseconds now = monotonic();
    if (now < reread_at_) return;
    reread_at_ = now + kReread;
    for (ChoreKeeper& chore : chores_) chore.look_again();
    queue::unread_marks();
  }

  core::Microseconds until_next() const {
    core::Microseconds now = monotonic();
    core::Microseconds next = std::int64_t{settings::sweep_interval} * 1000;
    for (const ChoreKeeper& chore : chores_) next = std::min(next, chore.wait_at(now));
    return std::min(next, caller_.wait_at(now));
  }

  std::array<ChoreKeeper, queue::kChoreCount> chores_ = {
      ChoreKeeper(Chore::promote), ChoreKeeper(Chore::rescue), ChoreKeeper(Chore::prune)};
  Caller caller_;
  bool has_settings_ = false;
  std::optional<pg::Fitness> fitness_; // nothing: not known
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
