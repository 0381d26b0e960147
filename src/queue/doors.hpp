// Before the queues' doors: who sleeps until there is something to claim (wait), and which queues
// are hungry, that is, a claim came back short and those who LISTEN have not been told since. Kept
// in shared memory.
#pragma once

#include <cstdint>
#include <span>

namespace jobq::queue {

// To be called once, by _PG_init while the server preloads its libraries.
void request_doors();

// The queue `default` before its first job: it has no number yet.
inline constexpr std::int64_t kUnmadeQueue = 0;

// Something in the queue may be claimed, as much as `jobs`; everybody else can see it. Wakes that
// many sleepers, and has the manager call if the queue is hungry. These raise nothing and may be
// called when a transaction ends.
void knock(std::int64_t queue_id, std::int64_t jobs);
void knock_for_all(std::int64_t queue_id);
// The same for every queue of the database.
void knock_everywhere();

// Those who LISTEN want to hear of the queue's next job.
void become_hungry(std::int64_t queue_id);

// A claim's view of how much was there. It is made before the claim's snapshot, so that what came
// to be ready since is not missed.
class Appetite {
 public:
  explicit Appetite(std::int64_t queue_id);

  // The claim came back short: those who LISTEN want to hear of the next job.
  void stay_hungry() const;

 private:
  std::int64_t queue_id_;
  std::uint64_t knocks_;
};

// This process's place in the line of sleepers. Whoever leaves it, on whatever way, passes on the
// token that it may have been given.
class Sleeper {
 public:
  Sleeper();
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  // At most core::kMostAwaited queues. A place that it has is given up, and its token passed on.
  void join(std::span<const std::int64_t> queue_ids);
  // Whether it was woken since the last time; to be asked before the look at the queues. The token
  // stays in hand until the look has shown what there is.
  bool take_token();
  void use_token();
  // The look has shown this queue: a token for another one is passed on when the line is left.
  void use_token_for(std::int64_t queue_id);
};

// A session that was told that there is something to claim owes a claim: if it ends without one,
// another sleeper is woken.
void promise_claim(std::int64_t queue_id);
void keep_promise(std::int64_t queue_id);
// A claim is over that did not come to the promised queue: another sleeper is woken for it.
void break_promise();

} // namespace jobq::queue
