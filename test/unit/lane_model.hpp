// A world for the lanes' rules: transactions whose steps are interleaved at random over the real
// code, and a table of rows that knows who sees what. What stands between two `co_await` of a step
// is one atomic step; what PostgreSQL does in one is one here. After each step all that must hold
// is checked. Each rule can be left out, by what the world does around the real code, to prove that
// the checks would notice.
//
// Rows that come past the lanes (COPY) are found, but their groups' order is not asked for: their
// tags are anybody's.
//
// What it leaves away: a row lock is one step, so nothing can be handed out twice; nobody waits for
// a lock, nobody sleeps and is woken; memory is in order. A database that is forgotten keeps its
// rows here, which is harder than what the server does.
#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/lane_table.hpp"

namespace jobq::core::model {

// What can be left out. The names are those of the rules.
#define JOBQ_LANE_RULES(rule)                                                                      \
  rule(none) /* a cursor falls */                                                                  \
      rule(lower_at_commit) rule(lower_at_abort) rule(lower_at_subabort)                           \
          rule(lower_after_commit_is_visible) rule(lower_after_abort_is_visible)                   \
              rule(lower_unconditionally) rule(lower_raises_highest)                               \
                  rule(prepare_is_refused) /* a cursor rises */                                    \
      rule(bound_by_vtime) rule(bound_by_vtime_plus_one) rule(bound_by_vtime_as_read)              \
          rule(bound_by_ring) rule(ring_forgets) rule(read_before_snapshot) rule(read_in_one_step) \
              rule(bound_by_highest_taken) rule(highest_not_plus_one) rule(bound_by_row_left)      \
                  rule(repeatable_read_stays)                                                      \
                      rule(same_generation) /* what is noted, and of what */                       \
      rule(put_is_minimum) rule(take_is_provisional) rule(take_is_minimum)                         \
          rule(other_takes_are_noted) rule(other_takes_are_noted_first) rule(row_is_never_updated) \
              rule(locked_row_is_deleted) /* several lanes */                                      \
      rule(unread_lane_stays) rule(last_lane_is_last_visited) rule(highest_at_tag) /* groups */    \
      rule(group_keeps_last) rule(overflow_goes_last)                                              \
          rule(overflow_is_remembered) /* lanes come and go */                                     \
      rule(reuse_when_unused) rule(reuse_and_generation) rule(reuse_raises_laneless)               \
          rule(builder_has_taken_nothing) rule(builder_snapshot_after_reserve)                     \
              rule(builder_gives_back) rule(install_highest) rule(install_start)                   \
                  rule(install_groups) rule(laneless_is_monotonic) rule(laneless_lowers)           \
                      rule(laneless_moves_nothing) rule(laneless_attaches) rule(doubt_at_commit)   \
                          rule(doubt_at_abort) rule(doubt_at_reuse)                                \
                              rule(survey_before_snapshot) /* what a builder knows */              \
      rule(known_if_none_was_open) rule(known_if_none_has_put) rule(partly_goes_behind)            \
          rule(learns_every_piece) rule(learns_no_more) /* turns given back */                     \
      rule(gives_back_own_last) rule(gives_back_own_turns) rule(gives_back_above_start)            \
          rule(gives_back_after_abort_is_visible) /* rows by another hand */                       \
      rule(copy_lowers) rule(copy_lowers_after_commit_is_visible) rule(copy_reaches_builders)      \
          rule(copy_doubts) rule(foreign_is_not_read_up)                                           \
              rule(forget_keeps_used) /* the statistic */                                          \
      rule(check_before_snapshot) rule(check_free_rows) rule(check_lowerings)                      \
          rule(check_generation) rule(check_open) rule(check_laneless) rule(check_copies)

enum class Rule {
#define JOBQ_LANE_RULE(name) name,
  JOBQ_LANE_RULES(JOBQ_LANE_RULE)
#undef JOBQ_LANE_RULE
};

const char* name_of(Rule rule);
std::vector<Rule> every_rule();

struct Setting {
  const char* name = "";
  std::size_t processes = 5;
  std::uint32_t databases = 1;
  std::int64_t queues = 1;
  std::int32_t priorities = 1;
  std::size_t slots = 4;
  std::size_t buckets = 2;
  std::size_t known_queues = 2;
  std::size_t groups = 16;
  std::uint64_t group_keys = 3;
  std::size_t most_rows = 14;
  int clock_forward = 50; // out of 100 steps
  int clock_back = 0;     // out of 1000
  Tag furthest_back = 40;
  int restarts = 0;  // out of 100,000
  int forgets = 0;   // out of 100,000
  int failures = 20; // out of 1000 steps that can fail
  int claims = 40;   // out of 100 verbs; as many puts, the rest is cancelled or purged
  int aborts = 25;   // out of 100 transactions
  int builds = 90;   // out of 100 puts without a lane
  int partly = 20;   // out of 100 builds
  int copies = 0;    // out of 100 verbs
  int learns = 3;    // out of 100 verbs
  int sleeps = 3;    // out of 100 steps
  int lulls = 0; // out of 100 claims: they sleep before their last step, and so long nobody claims
  std::int64_t longest_sleep = 300; // in steps of the others
};

// What a process does, as a coroutine of steps.
class Script {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  Script() = default;
  explicit Script(Handle handle) : handle_(handle) {}
  Script(Script&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Script& operator=(Script&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Script() {
    if (handle_) handle_.destroy();
  }

  std::coroutine_handle<> handle() const { return handle_; }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) const;
  void await_resume() const;

 private:
  Handle handle_;
};

struct Script::promise_type {
  struct Return {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle handle) const noexcept {
      return handle.promise().caller;
    }
    void await_resume() const noexcept {}
  };
  std::coroutine_handle<> caller = std::noop_coroutine();
  std::exception_ptr error;

  Script get_return_object() { return Script(Handle::from_promise(*this)); }
  std::suspend_always initial_suspend() const noexcept { return {}; }
  Return final_suspend() const noexcept { return {}; }
  void return_void() const {}
  void unhandled_exception() { error = std::current_exception(); }
};

inline std::coroutine_handle<> Script::await_suspend(std::coroutine_handle<> caller) const {
  handle_.promise().caller = caller;
  return handle_;
}
inline void Script::await_resume() const {
  if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
}

struct Failure {};

inline constexpr int kNone = -1;
inline constexpr std::uint64_t kNotYet = std::numeric_limits<std::uint64_t>::max();

struct Row {
  std::int64_t id = 0;
  LaneKey key;
  std::uint64_t group = 0;
  Tag tag = 0;
  bool is_laneless = false;
  bool is_foreign = false;
  bool is_inserted = false;
  std::uint64_t visible = kNotYet; // to snapshots from this on
  int creator = kNone;             // while it is open
  int creator_level = 0;
  int deleter = kNone;
  int deleter_level = 0;
  bool is_only_locked = false;
  std::uint64_t gone = kNotYet; // from snapshots from this on

  bool is_live() const { return gone == kNotYet; }
};

enum class Phase {
  idle,
  open,
  committed,  // visible, callbacks to come
  aborted,    // the same
  subaborted, // the same
};

struct Process {
  int id = 0;
  Script script;
  std::coroutine_handle<> at; // the innermost script's
  Phase phase = Phase::idle;
  bool is_parked = false; // between two transactions, and may not begin one
  bool is_failing = false;
  std::uint64_t asleep_until = 0;
  bool is_repeatable_read = false;
  std::uint64_t snapshot = 0; // of its begin
  int level = 0;              // 1: in a savepoint
  Touches touches;
  std::size_t callbacks_done = 0; // of a subtransaction's abort
  std::uint32_t copied = 0;       // the database into which it has copied
};

class World {
 public:
  World(const Setting& setting, std::uint64_t seed, Rule out);

  // Until a check fails or so many steps are done.
  void run(std::uint64_t steps);

  const std::string& fault() const { return fault_; }
  std::uint64_t steps() const { return steps_; }
  std::uint64_t count_of(std::string_view what) const;
  std::string trace() const;

 private:
  struct Event {
    std::uint64_t step = 0;
    int process = kNone;
    const char* what = "";
    LaneKey key;
    std::int64_t value = 0;
    std::int64_t other = 0;
  };
  struct Step {
    World* world;
    Process* process;
    bool can_fail;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) const { process->at = handle; }
    void await_resume() const {
      if (can_fail && std::exchange(process->is_failing, false)) throw Failure();
    }
  };
  struct Part { // of a claim: one lane
    LaneKey key;
    Touch* touch = nullptr;
    ClaimStart start;
    Scan scan;
  };

  bool without(Rule rule) const { return out_ == rule; }
  std::int64_t pick(std::int64_t least, std::int64_t most);
  bool chance(int of_100) { return pick(1, 100) <= of_100; }
  LaneKey pick_key();

  Step step(Process& p) { return {this, &p, true}; }
  Step callback(Process& p) { return {this, &p, false}; }
  void note(const Process& p, const char* what, const LaneKey& key = {}, std::int64_t value = 0,
            std::int64_t other = 0);
  void fail(const std::string& why);

  // The processes.
  Script live(Process& p);
  Script work(Process& p);
  Script act(Process& p);
  Script enqueue(Process& p);
  Script put(Process& p, LaneKey key, std::uint64_t group);
  Script claim(Process& p);
  Script claim_from(Process& p, std::vector<LaneKey> keys, std::size_t most);
  Script find_lanes(Process& p, QueueName queue, std::vector<LaneKey>& keys);
  Script survey(Process& p, QueueName queue, std::vector<LaneKey>& keys);
  Script scan_lane(Process& p, Part& part, std::uint64_t snapshot, std::size_t& wanted);
  Script cancel(Process& p, bool is_rescheduled);
  Script purge(Process& p);
  Script copy(Process& p);
  Script learn(Process& p);
  Script learn_piece(Process& p, Touch& touch, std::uint64_t generation, Tag from, Tag to);
  Script provide_lane(Process& p, LaneKey key);
  Script build(Process& p, LaneKey key, std::uint32_t at);
  Script commit(Process& p);
  Script abort(Process& p);
  Script rollback_to_savepoint(Process& p);
  Script manage(Process& p);
  Script drain(Process& p);

  // The rows.
  std::uint64_t take_snapshot(const Process& p) const;
  bool is_visible(const Row& row, const Process& p, std::uint64_t snapshot) const;
  Row* next_row(const Process& p, const LaneKey& key, Tag from, std::int64_t after_id,
                std::uint64_t snapshot);
  std::size_t live_rows() const;
  void forget_dead_rows();
  Row* any_row(const Process& p, const LaneKey& key);
  void make_commit_visible(Process& p);
  void make_abort_visible(Process& p, int level);

  // What leaves a rule out.
  std::optional<Tag> put_tag(Touch& touch, const Turn& turn, bool is_trying);
  std::optional<ClaimStart> begin_claim(Touch& touch);
  void end_scans(std::vector<Part>& parts, bool is_full);
  void end_commit(Process& p, Touch& touch);
  void end_abort(Process& p, Touch& touch);
  void end_subabort(Process& p, Touch& touch);
  void give_back(const Touch& touch);
  void end_copy(Process& p);
  void forget();
  void end_claim(Part& part);
  std::optional<std::uint32_t> reserve(const Touch& touch);
  bool end_check(const LaneKey& key, Reading reading, Tag found);
  Lane* lane_of(const LaneKey& key);
  bool is_read_up(Lane lane) const;
  Group* group_of(const Touch& touch, std::uint64_t hash);
  void detach_all(std::uint32_t at);

  // Invariants.
  void check();
  bool will_lower(Phase phase, const Touch& touch, const Row& row) const;
  bool is_covered(const Row& row) const;
  void check_group_order(const Row& row);
  void check_quiet();
  void check_chains();

  void start_all();
  void restart();
  void tick();
  void sleep(Process& p);
  bool rest();

  Setting setting_;
  Rule out_;
  std::mt19937_64 random_;
  std::uint64_t steps_ = 0;
  std::uint64_t now_ = 0; // also passes while all sleep
  std::uint64_t snapshots_ = 1;
  std::int64_t job_ids_ = 0;
  Tag clock_ = 1;
  std::uint64_t lull_until_ = 0;
  bool is_resting_ = false;
  bool is_drained_ = false;

  LaneCommon common_;
  std::vector<LaneSlot> slots_;
  std::vector<std::uint32_t> buckets_;
  std::vector<KnownQueue> queues_;
  std::vector<Group> groups_;
  LaneTable table_;

  std::vector<Row> rows_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Event> events_;
  std::unordered_map<const char*, std::uint64_t> counts_;
  std::string fault_;
};

} // namespace jobq::core::model
