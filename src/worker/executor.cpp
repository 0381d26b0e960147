#include "worker/executor.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "command/home.hpp"
#include "command/permit.hpp"
#include "command/sql_command.hpp"
#include "pg/client_command.hpp"
#include "pg/clock.hpp"
#include "pg/error.hpp"
#include "pg/log.hpp"
#include "pg/session.hpp"
#include "pg/standby.hpp"
#include "pg/statement.hpp"
#include "pg/transaction.hpp"
#include "queue/bounds.hpp"
#include "queue/claim.hpp"
#include "queue/doors.hpp"
#include "queue/executors.hpp"
#include "queue/queue.hpp"
#include "settings.hpp"
#include "worker/command_report.hpp"
#include "worker/roster.hpp"
#include "worker/step.hpp"
#include "worker/troubles.hpp"

namespace jobq::worker {

namespace {

// A minute, and what a schedule of each minute may be late: it finds its executor.
constexpr core::Microseconds kLongestIdle = 65 * core::kSecond;

constinit pg::Statement complete("SELECT jobq.complete($1, $2, $3)");
constinit pg::Statement fail("SELECT jobq.fail($1, $2, $3, NULL, $4)");
constinit pg::Statement give_back("SELECT jobq.snooze($1, $2, '0')");

struct Task {
  queue::Attempt attempt;
  command::SqlCommand command;
};

// The bookkeeping waits for no standby.
template <typename Body>
std::optional<pg::Error> note(const char* what, Body body) {
  return step(what, [&] {
    pg::set_for_transaction("lock_timeout", "1s");
    pg::set_for_transaction("synchronous_commit", "local");
    body();
  });
}

constexpr core::Microseconds kShortestWait = core::kSecond / 500;
constexpr core::Microseconds kLongestWait = core::kSecond / 10;

[[noreturn]] void leave() { pg::leave_quietly(); }

class Executor {
 public:
  // One job, or one look and a rest.
  void work() {
    if (!next_ && is_to_leave()) leave();
    if (sleeper_) sleeper_->take_token();
    std::optional<Task> task = next_ ? std::exchange(next_, std::nullopt) : claim();
    if (is_over_) leave();
    if (task) return execute(*task);
    if (sleeper_) sleeper_->use_token();
    if (!queue_id_ || joined_ == queue_id_) return rest();
    if (!sleeper_) sleeper_.emplace();
    sleeper_->join(std::span(&*queue_id_, 1)); // and looks again
    joined_ = queue_id_;
  }

 private:
  static bool is_dismissed() {
    return pg::is_asked_to_leave() || !settings::enabled || queue::is_recalled();
  }

  bool is_to_leave() const {
    return is_dismissed() || pg::monotonic_now() - idle_since_ >= kLongestIdle;
  }

  // The look, and what it waited for, reset the latch: so a token is asked for right before the
  // sleep.
  void rest() {
    core::Microseconds now = pg::monotonic_now();
    core::Microseconds until = std::max(idle_since_ + kLongestIdle, not_before_);
    if (not_before_ > now) until = not_before_;
    if (sleeper_ && not_before_ <= now && sleeper_->take_token()) return;
    if (!is_to_leave()) pg::rest(std::max<core::Microseconds>(until - now, 0), "JobqExecutor");
  }

  std::optional<Task> claim() {
    if (not_before_ > pg::monotonic_now()) return std::nullopt;
    std::optional<Task> task;
    is_over_ = true; // unless the extension is there
    std::optional<pg::Error> error = note("claiming a SQL job", [&] { task = take_if_wanted(); });
    if (!error) {
      troubles_.end();
      return task;
    }
    queue::become_idle();
    is_over_ = false;
    not_before_ =
        pg::monotonic_now() + troubles_.meet(*error, "jobq executor: cannot claim a SQL job");
    return std::nullopt;
  }

  // Whoever connects now would come with the same rights and settings.
  bool is_wanted_here() {
    if (!command::is_home() || is_server_read_only()) return false;
    if (command::refusal_of(role_, "")) return false;
    std::string face = command::face_of(role_);
    if (!face_) face_ = face;
    return face_ == face;
  }

  std::optional<Task> take_if_wanted() {
    is_over_ = !is_wanted_here();
    return is_over_ ? std::nullopt : take_one();
  }

  // The attempt is told of before the claim's commit, so that whoever cancels it from then on finds
  // it here.
  std::optional<Task> take_one() {
    std::optional<queue::Queue> queue = queue::find_queue(queue_);
    if (queue) queue_id_ = queue->queue_id;
    queue::Attempt attempt;
    auto note_attempt = [&attempt](std::initializer_list<pg::Value> row) {
      attempt = {.job_id = DatumGetInt64(row.begin()[0].datum),
                 .attempt = DatumGetInt32(row.begin()[1].datum)};
    };
    queue::claim_from_queue(note_attempt, queue_, {.worker = pg::text(label_)});
    if (attempt == queue::Attempt{}) return std::nullopt;
    pg::make_commit_durable();
    queue::begin_execution(attempt);
    std::optional<command::SqlCommand> command = command::read_command(attempt.job_id);
    if (command && command->role == role_) return Task{.attempt = attempt, .command = *command};
    refuse(attempt, command ? "its command is another role's" : "its command is not there");
    return std::nullopt;
  }

  static void refuse(const queue::Attempt& attempt, const char* why) {
    fail.run(
        {pg::int8(attempt.job_id), pg::int4(attempt.attempt), pg::text(why), pg::boolean(false)});
    queue::become_idle();
  }

  void execute(const Task& task) {
    sleeper_.reset();
    joined_.reset();
    if (!queue::is_still_wanted()) return end_execution();
    await_standby();
    if (queue::is_execution_stopped()) return end_execution();
    if (pg::is_asked_to_leave()) return give_back_unstarted(task);
    pg::CommandEnd end = pg::run_as_client(
        task.command.text,
        {.deadline = core::later(pg::monotonic_now(), task.command.timeout, core::kForever - 1),
         .is_stopped = queue::is_execution_stopped},
        queue::kLongestText);
    bool is_clean = !pg::is_asked_to_leave() && pg::reset_session();
    if (!report(task, end, is_clean)) leave(); // with the attempt in hand: its lease is over then
    if (!next_) end_execution();
    if (!is_clean) leave();
  }

  // No command starts that could start again on a standby which has not heard of the claim.
  static void await_standby() {
    const XLogRecPtr claim = pg::last_commit();
    for (core::Microseconds wait = kShortestWait; !pg::is_confirmed(claim);
         wait = std::min(2 * wait, kLongestWait))
      if (queue::is_execution_stopped() || !pause(wait)) return;
  }

  void end_execution() {
    queue::become_idle();
    idle_since_ = pg::monotonic_now();
  }

  void give_back_unstarted(const Task& task) {
    std::optional<pg::Error> error = note("giving back a SQL job", [&] {
      give_back.run({pg::int8(task.attempt.job_id), pg::int4(task.attempt.attempt)});
    });
    if (!error) queue::become_idle();
    leave();
  }

  // One commit ends the attempt and takes the next one. However long it takes: meanwhile the
  // manager renews the lease. Who is asked to leave in the middle of it tries once more. False:
  // there is no time left.
  bool report(const Task& task, const pg::CommandEnd& end, bool takes_next) {
    for (bool is_last = false;;) {
      std::optional<Task> next;
      std::optional<pg::Error> error = note("ending a SQL job", [&] {
        write_down(task, end);
        if (takes_next && !is_dismissed()) next = take_if_wanted();
      });
      next_ = error ? std::nullopt : std::move(next);
      if (!error) return true;
      queue::keep_execution(task.attempt);
      takes_next = false; // the claim may be what has failed
      core::Microseconds wait = troubles_.meet(*error, "jobq executor: cannot end SQL job " +
                                                           std::to_string(task.attempt.job_id));
      if (is_last) return false;
      is_last = pg::is_asked_to_leave() || !pause(wait);
    }
  }

  static void write_down(const Task& task, const pg::CommandEnd& end) {
    pg::Value job_id = pg::int8(task.attempt.job_id);
    pg::Value attempt = pg::int4(task.attempt.attempt);
    if (end.error)
      fail.run(
          {job_id, attempt, pg::text(failure_of(end, task.command.timeout)), pg::boolean(true)});
    else
      complete.run({job_id, attempt, result_of(end)});
  }

  // What cancels a rest is about nothing in particular.
  static bool pause(core::Microseconds length) {
    try {
      pg::rest(length, "JobqExecutor");
    } catch (const pg::Error& error) {
      if (error.sqlstate() != ERRCODE_QUERY_CANCELED) throw;
    }
    return !pg::is_asked_to_leave();
  }

  const Oid role_ = pg::my_start_role();
  const std::string queue_ = queue::sql_queue_of(role_);
  const std::string label_ = "jobq executor:" + std::to_string(pg::my_process_id());
  std::optional<std::int64_t> queue_id_;
  std::optional<std::string> face_;
  std::optional<queue::Sleeper> sleeper_; // its place in the line, while it has nothing in hand
  std::optional<std::int64_t> joined_;    // for this queue
  std::optional<Task> next_;              // taken when the last one was ended
  bool is_over_ = false;
  core::Microseconds idle_since_ = pg::monotonic_now();
  core::Microseconds not_before_ = 0;
  Troubles troubles_;
};

// False: somebody needs the database and has asked us to leave while we connected.
bool connect() {
  try {
    pg::connect_as(pg::my_start_database(), pg::my_start_role());
    return true;
  } catch (const pg::Error&) {
    if (!pg::is_asked_to_leave()) throw;
    return false;
  }
}

void run() {
  if (!queue::sit_down(pg::my_ticket())) leave();
  if (is_held(pg::my_start_database()) || !connect()) {
    queue::become_idle();
    leave();
  }
  pg::accept_commands();
  queue::become_idle();
  Executor executor;
  for (;;) pg::in_round([&] { executor.work(); });
}

} // namespace

JOBQ_WORKER(jobq_executor_main, run)

} // namespace jobq::worker
