// Waiting until a queue has something to claim. The order of things is what keeps a job from being
// missed: first the place in the line of sleepers (doors), then the look at the queue with a new
// snapshot, then sleep. A job that the look did not show is committed after it, and wakes.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/waiters.hpp"
#include "pg/clock.hpp"
#include "pg/error.hpp"
#include "pg/extension.hpp"
#include "pg/memory.hpp"
#include "pg/owner.hpp"
#include "pg/procedure.hpp"
#include "pg/sleep.hpp"
#include "queue/bounds.hpp"
#include "queue/doors.hpp"
#include "queue/queue.hpp"
#include "queue/ready_line.hpp"

namespace jobq::queue {

namespace {

constexpr core::Microseconds kUsualTimeout = 30 * core::kSecond;

// What one look at the queues has shown.
struct Look {
  std::vector<std::int64_t> queue_ids;
  std::optional<std::size_t> ready; // which of them
  bool is_crowded = false;
};

class Wait {
 public:
  Wait(std::vector<std::string> queues, core::Microseconds timeout)
      : queues_(std::move(queues)),
        deadline_(core::later(pg::monotonic_now(), std::min(timeout, pg::time_left_to_statement()),
                              core::kForever - 1)) {}

  // Which queue has something; nothing at the timeout.
  std::optional<std::size_t> run() {
    pg::commit_and_go_on();
    for (;;) {
      sleeper_.take_token();
      Look look = look_at_queues();
      if (look.ready) {
        promise_claim(look.queue_ids[*look.ready]);
        sleeper_.use_token_for(look.queue_ids[*look.ready]);
        return look.ready;
      }
      sleeper_.use_token();
      if (look.queue_ids != joined_) {
        sleeper_.join(look.queue_ids);
        joined_ = look.queue_ids;
        continue;
      }
      if (!rest(look.is_crowded)) return std::nullopt;
    }
  }

 private:
  // With the owner's rights, within one transaction. What this session remembers of a queue may be
  // older than what woke it; the extension may even be another one by now.
  Look look_at_queues() const {
    const pg::TurnMemory memory;
    const pg::OwnerRights rights(pg::require_fitting_version());
    Look look;
    for (const std::string& name : queues_) {
      std::optional<Queue> queue = read_queue(name);
      if (!queue && name != kDefaultQueue) complain_of_unknown(name);
      look.queue_ids.push_back(queue ? queue->queue_id : kUnmadeQueue);
      if (!queue || queue->is_paused || look.ready) continue;
      Sight sight = look_at_line(*queue);
      if (sight.is_claimable) look.ready = look.queue_ids.size() - 1;
      look.is_crowded |= sight.is_crowded;
    }
    return look;
  }

  // Sleeps until there is reason to look again; false: the time is over. What stands behind a
  // crowd wakes nobody when the crowd is gone, so it is looked for now and then.
  //
  // The look and the commit may have waited for locks, and looked at the client's socket: all of
  // that resets the latch. So a token is asked for after it, right before the sleep.
  bool rest(bool is_crowded) {
    for (bool has_slept = false;; has_slept = true) {
      pg::commit_and_go_on();
      if (has_slept) pg::require_client();
      if (sleeper_.take_token() || (has_slept && is_crowded)) return true;
      core::Microseconds left = deadline_ - pg::monotonic_now();
      if (left <= 0) return false;
      pg::sleep(std::min(left, pg::longest_slice()), "JobqWait");
    }
  }

  std::vector<std::string> queues_;
  core::Microseconds deadline_;
  Sleeper sleeper_;
  std::vector<std::int64_t> joined_;
};

core::Microseconds read_timeout(const pg::Call& call) {
  constexpr pg::Parameter kTimeout{1, "timeout"};
  std::optional<core::Interval> timeout = call.interval_or_null(kTimeout);
  return timeout ? check_length(*timeout, kTimeout.name) : kUsualTimeout;
}

std::optional<std::size_t> wait_for(const pg::Call& call, std::vector<std::string> queues) {
  return Wait(std::move(queues), read_timeout(call)).run();
}

Datum wait(pg::Call& call) {
  std::string queue(check_queue_name(call.text_or_null({0, "queue"}).value_or(kDefaultQueue)));
  return call.returns_row({pg::boolean(wait_for(call, {queue}).has_value())});
}

std::vector<std::string> read_queues(const pg::Call& call) {
  std::vector<std::string> queues;
  for (std::string_view queue : call.texts({0, "queues"}))
    queues.emplace_back(check_queue_name(queue));
  if (queues.empty() || queues.size() > core::kMostAwaited)
    pg::raise(
        {.sqlstate = pg::SqlState::invalid_value,
         .message = "queues must name 1 to " + std::to_string(core::kMostAwaited) +
                    " queues, not " + std::to_string(queues.size()),
         .hint = "Name at least one, and give several workers a part each of more than that."});
  return queues;
}

Datum wait_any(pg::Call& call) {
  std::vector<std::string> queues = read_queues(call);
  std::optional<std::size_t> ready = wait_for(call, queues);
  return call.returns_row({ready ? pg::text(queues[*ready]) : pg::null(TEXTOID)});
}

} // namespace

JOBQ_PROCEDURE(jobq_wait, wait)
JOBQ_PROCEDURE(jobq_wait_any, wait_any)

} // namespace jobq::queue
