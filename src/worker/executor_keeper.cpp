#include "worker/executor_keeper.hpp"

#include <algorithm>

#include "command/home.hpp"
#include "command/permit.hpp"
#include "command/waiting.hpp"
#include "pg/clock.hpp"
#include "pg/log.hpp"
#include "pg/role.hpp"
#include "pg/session.hpp"
#include "pg/statement.hpp"
#include "queue/agenda.hpp"
#include "queue/bounds.hpp"
#include "queue/bury.hpp"
#include "queue/queue.hpp"
#include "queue/ready_line.hpp"
#include "queue/renew.hpp"
#include "settings.hpp"
#include "worker/executor.hpp"
#include "worker/step.hpp"

namespace jobq::worker {

namespace {

using queue::Chore;
using queue::Seat;
using queue::Stage;

// A third of the lease of SQL jobs.
constexpr core::Microseconds kBetweenRenewals = 10 * core::kSecond;
constexpr core::Microseconds kBetweenLooks = core::kSecond;
constexpr core::Microseconds kExit = core::kSecond / 100; // of a process, about
constexpr core::Microseconds kFirstPlaceRetry = core::kSecond / 5;
constexpr core::Microseconds kPlaceRetry = 5 * core::kSecond;
constexpr core::Microseconds kLongestStart = 60 * core::kSecond;
constexpr int kMostDoublings = 6; // 64 s

constinit pg::Statement
    sql_queues("SELECT queue_id, name, pg_catalog.substr(name, 5) FROM jobq.queue"
               " WHERE pg_catalog.starts_with(name, 'sql/') AND NOT paused");

bool has_nothing(const Seat& seat) {
  return seat.stage == Stage::opened || seat.stage == Stage::idle;
}

template <typename Matches>
std::int64_t count(const std::vector<Seat>& seats, Matches matches) {
  return std::count_if(seats.begin(), seats.end(), matches);
}

// A queue that was left behind by a move of the database is nobody's.
std::uint32_t role_of(std::string_view number) {
  std::uint64_t role = 0;
  for (char digit : number) {
    if (digit < '0' || digit > '9' || role > 0xffffffff) return 0;
    role = role * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return role > 0xffffffff ? 0 : static_cast<std::uint32_t>(role);
}

} // namespace

core::Microseconds ExecutorKeeper::wait_at(core::Microseconds now) const {
  core::Microseconds next = core::kForever;
  if (is_look_due() || !died_.empty()) next = now;
  if (look_at_) next = std::min(next, *look_at_);
  for (const Seat& seat : queue::seats_of(pg::my_database())) {
    if (seat.stage == Stage::busy) next = std::min(next, renew_at_);
    if (seat.stage == Stage::left)
      next = std::min(next, queue::is_leaving(seat) ? now + kExit : now);
  }
  for (const Starting& starting : starting_)
    if (starting.process.state() == pg::StartedWorker::State::stopped) next = now;
  if (next == core::kForever) return next;
  return std::max<core::Microseconds>(std::max(next, not_before_) - now, 0);
}

void ExecutorKeeper::look_again() { look_at_ = 0; }

void ExecutorKeeper::work() {
  collect();
  see_failed_starts(pg::monotonic_now());
  if (renew_at_ <= pg::monotonic_now() || !died_.empty()) renew();
  if (is_look_due()) look();
}

bool ExecutorKeeper::is_look_due() const {
  return queue::mark_of(Chore::execute) <= pg::now() || places_ != settings::sql_workers ||
         (look_at_ && *look_at_ <= pg::monotonic_now());
}

// What became of executors since the last time.
void ExecutorKeeper::collect() {
  core::Microseconds now = pg::monotonic_now();
  const std::vector<Seat> heard = queue::collect_seats();
  for (const Seat& seat : heard) {
    if (seat.stage == Stage::died) died_.push_back(seat.attempt);
    if (seat.stage == Stage::failed) note_failure(seat.role, now);
    if (seat.stage == Stage::idle || seat.stage == Stage::busy) refused_.erase(seat.role);
  }
  seats_ = queue::seats_of(pg::my_database());
  if (seats_.size() < heard.size()) look_at_ = now; // somebody may wait for the place
  std::erase_if(starting_, [this](const Starting& starting) {
    return std::any_of(seats_.begin(), seats_.end(), [&](const Seat& seat) {
      return seat.ticket == starting.ticket && seat.stage != Stage::opened;
    });
  });
}

// The server could not make the process, or it ended before it came in.
void ExecutorKeeper::see_failed_starts(core::Microseconds now) {
  for (const Seat& seat : seats_) {
    if (seat.stage != Stage::opened) continue;
    bool is_stopped = std::any_of(starting_.begin(), starting_.end(), [&](const Starting& start) {
      return start.ticket == seat.ticket &&
             start.process.state() == pg::StartedWorker::State::stopped;
    });
    if (!is_stopped && now - seat.since < kLongestStart) continue;
    queue::close_seat(seat.ticket);
    note_failure(seat.role, now);
  }
  std::erase_if(starting_, [](const Starting& starting) {
    return starting.process.state() == pg::StartedWorker::State::stopped;
  });
}

void ExecutorKeeper::note_failure(std::uint32_t role, core::Microseconds now) {
  Refusals& refusals = refused_[role];
  refusals.not_before = now + (core::kSecond << std::min(refusals.failures++, kMostDoublings));
  look_at_ = refusals.not_before;
}

// True: it has failed, and is to wait.
bool ExecutorKeeper::fail(const std::optional<pg::Error>& error) {
  if (!error) {
    troubles_.end();
    not_before_ = 0;
    return false;
  }
  not_before_ =
      pg::monotonic_now() + troubles_.meet(*error, "jobq manager: cannot look after SQL jobs");
  return true;
}

void ExecutorKeeper::renew() {
  std::optional<pg::Error> error = step("renewing leases of SQL jobs", [&] {
    for (const queue::Attempt& attempt : died_) queue::expire_now(attempt);
    queue::renew_executions();
  });
  if (fail(error)) return;
  died_.clear();
  renew_at_ = pg::monotonic_now() + kBetweenRenewals;
}

void ExecutorKeeper::look() {
  look_at_.reset();
  const core::Mark before = queue::begin_reading(Chore::execute);
  std::vector<Demand> demands;
  std::optional<pg::Error> error = step("looking for SQL jobs", [&] { demands = find_demands(); });
  if (fail(error)) return queue::give_up_reading(Chore::execute, before);
  queue::end_reading(Chore::execute, core::kForever, core::kEnd);
  places_ = settings::sql_workers;
  serve(demands);
}

// In the order in which they are due. Jobs that can never have an executor end with the reason.
std::vector<ExecutorKeeper::Demand> ExecutorKeeper::find_demands() {
  std::vector<Demand> demands;
  if (!command::is_home()) return demands;
  pg::Rows queues = sql_queues.run_freely({});
  for (std::uint64_t row = 0; row < queues.size(); ++row) {
    std::optional<queue::Queue> queue = queue::find_queue(queues.int8(row, 0));
    if (!queue) continue;
    queue::Backlog backlog = queue::look_at_backlog(*queue, settings::sql_workers + 1);
    if (backlog.claimable == 0) continue;
    std::uint32_t role = role_of(queues.text(row, 2));
    command::Due due = command::due_of(backlog.first);
    std::string name = pg::role_name(role).value_or(due.role_name);
    if (auto refusal = command::refusal_of(role, name)) {
      queue::bury_ready(queue->queue_id, refusal->reason);
      look_at_ = pg::monotonic_now() + kBetweenLooks; // at the rest, if there is one
      continue;
    }
    std::int64_t ready = count(seats_, [role](const Seat& seat) {
      return seat.role == role && has_nothing(seat) && !seat.is_recalled;
    });
    demands.push_back(
        {.role = role, .name = name, .missing = backlog.claimable - ready, .due_at = due.at});
    if (demands.back().missing > 0 && command::why_full(role)) {
      demands.back().missing = 0;
      look_at_ = pg::monotonic_now() + kBetweenLooks;
    }
  }
  std::sort(demands.begin(), demands.end(),
            [](const Demand& one, const Demand& other) { return one.due_at < other.due_at; });
  return demands;
}

// One each, and again, as long as there are places.
void ExecutorKeeper::serve(std::vector<Demand>& demands) {
  auto is_missing = [](const Demand& demand) { return demand.missing > 0; };
  std::int64_t free = places_ - static_cast<std::int64_t>(seats_.size());
  while (free > 0 && std::any_of(demands.begin(), demands.end(), is_missing)) {
    for (Demand& demand : demands) {
      if (demand.missing <= 0 || free == 0) continue;
      --demand.missing;
      if (start(demand)) --free;
    }
  }
  recall(demands);
  if (std::any_of(demands.begin(), demands.end(), is_missing))
    look_at_ = std::min(look_at_.value_or(core::kForever), pg::monotonic_now() + kBetweenLooks);
}

bool ExecutorKeeper::start(const Demand& demand) {
  core::Microseconds now = pg::monotonic_now();
  auto refused = refused_.find(demand.role);
  core::Microseconds from = refused == refused_.end() ? 0 : refused->second.not_before;
  from = std::max(from, next_place_try_);
  if (from > now) {
    look_at_ = std::min(look_at_.value_or(core::kForever), from);
    return false;
  }
  std::optional<std::uint64_t> ticket = queue::open_seat(demand.role, now);
  if (!ticket) return false;
  std::optional<pg::StartedWorker> process = pg::start_worker(
      kExecutor, {.database = pg::my_database(), .ticket = *ticket, .role = demand.role});
  if (!process) {
    queue::close_seat(*ticket);
    lack_place(now);
    return false;
  }
  lacks_ = 0;
  starting_.push_back({.ticket = *ticket, .role = demand.role, .process = *std::move(process)});
  pg::log_now("jobq executor started for role \"" + demand.name + "\"");
  return true;
}

// The place of a process that has just ended is free a moment later, so the first lack says
// nothing.
void ExecutorKeeper::lack_place(core::Microseconds now) {
  next_place_try_ = now + (lacks_++ == 0 ? kFirstPlaceRetry : kPlaceRetry);
  look_at_ = next_place_try_;
  if (lacks_ == 1 || now < next_lack_news_) return;
  next_lack_news_ = now + core::kHour;
  pg::log_now("jobq manager: no free background worker slot for SQL jobs, which wait; raise "
              "max_worker_processes and restart the server");
}

// Whose jobs wait for a place gets that of an executor without work; else that of the first one to
// finish what it has in hand, unless its own role's next job is older. Those that are more than
// there may be go too, first the ones without work.
void ExecutorKeeper::recall(const std::vector<Demand>& demands) {
  auto waiting = std::find_if(demands.begin(), demands.end(),
                              [](const Demand& demand) { return demand.missing > 0; });
  auto is_older_than_waiting = [&](std::uint32_t role) {
    return std::any_of(demands.begin(), waiting,
                       [role](const Demand& demand) { return demand.role == role; });
  };
  std::vector<Seat> seats = seats_;
  std::stable_partition(seats.begin(), seats.end(), has_nothing);
  std::int64_t surplus = static_cast<std::int64_t>(seats.size()) - places_;
  for (const Seat& seat : seats) {
    bool is_in_the_way =
        waiting != demands.end() && seat.role != waiting->role && !is_older_than_waiting(seat.role);
    queue::recall(seat.ticket, seat.stage != Stage::opened && (is_in_the_way || surplus > 0));
    --surplus;
  }
}

} // namespace jobq::worker
