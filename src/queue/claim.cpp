#include "queue/claim.hpp"

#include <optional>
#include <string>
#include <vector>

#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/session.hpp"
#include "pg/statement.hpp"
#include "pg/table.hpp"
#include "pg/text.hpp"
#include "pg/transaction.hpp"
#include "pg/watch.hpp"
#include "queue/agenda.hpp"
#include "queue/bounds.hpp"
#include "queue/doors.hpp"
#include "queue/lanes.hpp"
#include "queue/line.hpp"
#include "queue/notes.hpp"
#include "queue/queue.hpp"
#include "queue/ready_line.hpp"
#include "queue/tables.hpp"
#include "settings.hpp"

namespace jobq::queue {

namespace {

constexpr std::int32_t kMostJobs = 10'000;
constexpr std::size_t kLongestWorker = 63;

constinit pg::Statement
    select_last_error("SELECT error FROM jobq.failure WHERE job_id OPERATOR(pg_catalog.=) $1"
                      " ORDER BY attempt DESC LIMIT 1");

void check_transaction() {
  if (settings::claim_in_transaction == settings::kAllow || !pg::is_transaction_block()) return;
  static bool has_warned = false;
  const pg::Complaint complaint = {
      .sqlstate = pg::SqlState::active_transaction,
      .message = "claim in a transaction block takes effect at its commit",
      .detail = "A worker that dies before that commit leaves no trace of the attempt.",
      .hint = "Commit the claim before you work on its jobs, or set jobq.claim_in_transaction = "
              "'allow'."};
  if (settings::claim_in_transaction == settings::kError) pg::raise(complaint);
  if (!has_warned) pg::warn(complaint);
  has_warned = true;
}

struct Lease {
  TimestampTz claimed_at;
  core::Microseconds length;
  TimestampTz expires_at;
};

struct Claimed {
  std::int32_t count = 0; // handed out
  bool is_all = true;     // there was nothing more
};

// The lanes that a claim visits: begun before its snapshot, so that an error on the way lowers each
// cursor to where it was.
class LaneClaims {
 public:
  explicit LaneClaims(std::int64_t queue_id) {
    for (const Stretch& stretch : stretches_of(queue_id)) begin(queue_id, stretch.priority);
  }

  std::span<const Stretch> stretches() const { return stretches_; }

  void note_taken(std::size_t lane, core::Tag tag) {
    scans_[lane].lowest = std::min(scans_[lane].lowest, tag);
    scans_[lane].highest = std::max(scans_[lane].highest, tag);
  }
  // A job that is there for all to see, or may be again without anybody's word.
  void note_left(std::size_t lane, core::Tag tag) {
    scans_[lane].left = std::min(scans_[lane].left, tag);
  }

  // is_full: the claim stopped at the last job that it took.
  void end(bool is_full) {
    core::set_ends(scans_, is_full);
    in_lanes([this](core::LaneTable& table) {
      for (std::size_t i = 0; i < scans_.size(); ++i)
        table.end_claim(*touches_[i], starts_[i], scans_[i]);
    });
  }

 private:
  void begin(std::int64_t queue_id, std::int32_t priority) {
    core::Touch& touch = touch_of(queue_id, priority);
    touches_.push_back(&touch);
    auto start = in_lanes([&](core::LaneTable& table) { return table.begin_claim(touch); });
    if (!start) return touches_.pop_back();
    starts_.push_back(*start);
    stretches_.push_back({.priority = priority, .from = start->reading.cursor});
    scans_.push_back({.is_current = !pg::has_one_snapshot()});
  }

  std::vector<core::Touch*> touches_;
  std::vector<core::ClaimStart> starts_;
  std::vector<Stretch> stretches_;
  std::vector<core::Scan> scans_;
};

// One claim at work on one queue: walks its lanes from their cursors and takes what it may.
class Claiming {
 public:
  Claiming(const Queue& queue, const Claim& claim, LaneClaims& lanes)
      : queue_(queue), claim_(claim), lanes_(lanes) {}

  // A claim buries so many at the most: the rest is for the next one, so that no number of them is
  // too much for a caller's patience.
  Claimed run(const HandOut& hand_out) {
    pg::Value queue_name = pg::text(queue_.name);
    std::int32_t claimed = 0;
    for (bool is_row = line_.seek(); is_row; is_row = line_.next()) {
      if (!take()) continue;
      if (line_.verdict().fate != core::Fate::again) {
        bury();
      } else {
        lease_out(hand_out, queue_name);
        ++claimed;
      }
      if (claimed == claim_.max_jobs || dead_.size() == kMostDead) break;
    }
    bool is_all = claimed < claim_.max_jobs && dead_.size() < kMostDead;
    lanes_.end(!is_all);
    if (claimed > 0) line_.leases().insert(new_leases_);
    if (claimed > 0) note_instant(Chore::rescue, lease_.expires_at);
    finish(dead_, lease_.claimed_at);
    return {.count = claimed, .is_all = is_all};
  }

 private:
  static constexpr std::size_t kMostDead = 1000;

  // A row that is being deleted is its deleter's: his abort lowers the cursor. Any other that is
  // left bounds it.
  bool take() {
    bool is_free = !line_.is_held();
    if (is_free && line_.is_whole()) {
      pg::Erasure erasure = line_.row().erase(pg::IndexWalk::Waiting::pass);
      if (erasure == pg::Erasure::done) {
        lanes_.note_taken(line_.stretch(), line_.tag());
        note_taken(queue_.queue_id, 1);
        return true;
      }
      is_free = false;
    }
    if (is_free || !line_.row().is_being_deleted()) lanes_.note_left(line_.stretch(), line_.tag());
    return false;
  }

  Lease lease_from_now() const {
    pg::look_at_clocks();
    TimestampTz now = pg::now();
    core::Microseconds length = claim_.lease.value_or(queue_.lease);
    return {.claimed_at = now, .length = length, .expires_at = now + length};
  }

  void bury() {
    dead_.push_back({.job_id = line_.row().int8(ReadyTable::job_id),
                     .queue_id = queue_.queue_id,
                     .counters = line_.counters(),
                     .state = kDead,
                     .reason = pg::text(line_.verdict().reason)});
  }

  void lease_out(const HandOut& hand_out, pg::Value queue_name) {
    const pg::IndexWalk& row = line_.row();
    const pg::IndexWalk& job = line_.job();
    core::Counters before = line_.counters();
    core::Counters counted = {
        .attempt = before.attempt + 1, .tries = before.tries + 1, .crashes = before.crashes};
    new_leases_.add({row.at(ReadyTable::job_id), pg::int8(queue_.queue_id),
                     pg::instant(lease_.claimed_at), pg::instant(lease_.expires_at),
                     pg::int8(lease_.length), pg::null(INT8OID), pg::int4(counted.attempt),
                     pg::int4(counted.tries), pg::int4(counted.crashes),
                     pg::boolean(!job.at(JobTable::job_key).is_null), claim_.worker});
    hand_out({row.at(ReadyTable::job_id), pg::int4(counted.attempt), job.at(JobTable::task),
              job.at(JobTable::payload), queue_name, row.at(ReadyTable::group_key),
              job.at(JobTable::headers), pg::int4(counted.tries),
              pg::int4(line_.limits().max_attempts), pg::int4(counted.crashes),
              pg::int4(DatumGetInt16(row.at(ReadyTable::priority).datum)), last_error(),
              job.at(JobTable::enqueued_at), pg::instant(lease_.expires_at)});
  }

  pg::Value last_error() {
    if (line_.counters().attempt == 0) return pg::null(TEXTOID);
    pg::Rows rows = select_last_error.run({line_.row().at(ReadyTable::job_id)});
    return rows.empty() ? pg::null(TEXTOID) : pg::copied(rows.at(0, 0));
  }

  const Queue& queue_;
  const Claim& claim_;
  LaneClaims& lanes_;
  ReadyLine line_{queue_, lanes_.stretches()};
  // Begins after the line's snapshot, and so after the end of every attempt that it shows as ended.
  const Lease lease_ = lease_from_now();
  pg::NewRows new_leases_;
  std::vector<Ended> dead_;
};

Claimed claim_now(const HandOut& hand_out, const Queue& queue, const Claim& claim) {
  LaneClaims lanes(queue.queue_id);
  if (lanes.stretches().empty()) return {};
  Claimed claimed = Claiming(queue, claim, lanes).run(hand_out);
  if (claimed.count > 0 && !settings::async_claims) pg::make_commit_durable();
  return claimed;
}

// Those who LISTEN claim until a claim comes back short, and wait to be told from then on: so if
// there is more, they are told at once. A transaction's one snapshot may be older than what came to
// be ready before the claim began.
void leave_short(const Queue& queue, const Appetite& appetite, const Claimed& claimed) {
  if (!claimed.is_all) return call(pg::my_database(), queue.queue_id);
  if (!pg::has_one_snapshot()) return appetite.stay_hungry();
  const Appetite now(queue.queue_id);
  if (look_at_line(queue, pg::View::latest).is_claimable)
    call(pg::my_database(), queue.queue_id);
  else
    now.stay_hungry();
}

// Each name is checked before the first is claimed from: an error must not depend on what is ready.
void check_claimable(std::string_view queue) {
  if (check_queue_name(queue) != kDefaultQueue) require_queue(queue);
}

constexpr pg::Parameter kQueue{0, "queue"};
constexpr pg::Parameter kQueues{0, "queues"};

Datum claim(pg::Call& call) {
  std::string_view queue = check_queue_name(call.text_or_null(kQueue).value_or(kDefaultQueue));
  Claim claim = read_claim(call, 1);
  pg::ResultSet set(call);
  claim_from_queue(into(set), queue, claim);
  break_promise();
  return set.done();
}

Datum claim_from(pg::Call& call) {
  std::vector<std::string_view> queues = call.texts(kQueues);
  for (std::string_view queue : queues) check_claimable(queue);
  Claim claim = read_claim(call, 1);
  pg::ResultSet set(call);
  for (std::string_view queue : queues) {
    claim.max_jobs -= claim_from_queue(into(set), queue, claim);
    if (claim.max_jobs == 0) break;
  }
  break_promise();
  return set.done();
}

} // namespace

HandOut into(pg::ResultSet& set) {
  return [&set](std::initializer_list<pg::Value> row) { set.add(row); };
}

Claim read_claim(const pg::Call& call, int position) {
  check_transaction();
  Claim claim;
  if (auto max_jobs = call.int4_or_null({position, "max_jobs"}))
    claim.max_jobs = check_max_jobs(*max_jobs, kMostJobs);
  std::optional<std::string_view> worker = call.text_or_null({position + 1, "worker"});
  if (worker) check_name(*worker, "worker");
  claim.worker = worker ? pg::text(*worker) : pg::text(pg::session_label(kLongestWorker));
  if (auto lease = call.interval_or_null({position + 2, "lease"}))
    claim.lease = check_lease(check_length(*lease, "lease"));
  return claim;
}

// Two claims never get the same row: each holds the rows that it took until its transaction ends,
// and passes over those that another holds. A job whose limits are reached is buried on the way, so
// it does not stand in front of healthy ones.
std::int32_t claim_from_queue(const HandOut& hand_out, std::string_view name, const Claim& claim) {
  const Appetite before(kUnmadeQueue); // the queue may come to be made while it is looked up
  std::optional<Queue> queue = share_queue_if_made(name);
  const Appetite appetite = queue ? Appetite(queue->queue_id) : before;
  if (!queue || is_paused_now(*queue)) {
    appetite.stay_hungry();
    return 0;
  }
  Claimed claimed = claim_now(hand_out, *queue, claim);
  keep_promise(queue->queue_id);
  if (claimed.count < claim.max_jobs) leave_short(*queue, appetite, claimed);
  return claimed.count;
}

JOBQ_WRITING(jobq_claim, claim)
JOBQ_WRITING(jobq_claim_from, claim_from)

} // namespace jobq::queue
