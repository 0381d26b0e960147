#include "queue/claim.hpp"

#include <limits>
#include <string>
#include <vector>

#include "pg/clock.hpp"
#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/insertion.hpp"
#include "pg/memory.hpp"
#include "pg/text.hpp"
#include "pg/transaction.hpp"
#include "pg/watch.hpp"
#include "queue/bounds.hpp"
#include "queue/line.hpp"
#include "queue/queue.hpp"
#include "settings.hpp"

namespace jobq::queue {

namespace {

constexpr std::int32_t kMostJobs = 10'000;
constexpr std::size_t kLongestWorker = 63;

// Walks the line in its order and locks what it returns, row by row; the executor stops it at the
// number of rows that is wanted. A row whose job is missing, or that has a lease already (a restore
// under way, a hand in the tables), is passed over before it is locked.
constinit pg::Statement next_ready(
    "SELECT r.ctid, r.job_id, r.priority::integer, r.attempt, r.tries, r.crashes, r.group_key,"
    " j.job_key IS NOT NULL, j.task, j.payload, j.headers, j.max_attempts, j.max_crashes,"
    " j.enqueued_at,"
    " CASE WHEN r.attempt OPERATOR(pg_catalog.>) 0 THEN"
    " (SELECT f.error FROM jobq.failure AS f WHERE f.job_id OPERATOR(pg_catalog.=) r.job_id"
    " ORDER BY f.attempt DESC LIMIT 1) END"
    " FROM jobq.ready AS r JOIN jobq.job AS j ON j.job_id OPERATOR(pg_catalog.=) r.job_id"
    " WHERE r.queue_id OPERATOR(pg_catalog.=) $1"
    " AND NOT EXISTS (SELECT FROM jobq.lease AS l WHERE l.job_id OPERATOR(pg_catalog.=) r.job_id)"
    " ORDER BY r.priority, r.tag, r.job_id LIMIT 10000 FOR UPDATE OF r SKIP LOCKED");

constinit pg::Statement
    delete_ready("DELETE FROM jobq.ready WHERE ctid OPERATOR(pg_catalog.=) ANY ($1)");

constinit pg::Insertion
    into_lease("jobq.lease", "job_id, queue_id, attempt, tries, crashes, keyed, worker, claimed_at,"
                             " length, expires_at");

enum Column {
  kTid,
  kJobId,
  kPriority,
  kAttempt,
  kTries,
  kCrashes,
  kGroupKey,
  kIsKeyed,
  kTask,
  kPayload,
  kHeaders,
  kMaxAttempts,
  kMaxCrashes,
  kEnqueuedAt,
  kLastError
};

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

core::Counters counters_at(const pg::Rows& rows, std::uint64_t row) {
  return {.attempt = rows.int4(row, kAttempt),
          .tries = rows.int4(row, kTries),
          .crashes = rows.int4(row, kCrashes)};
}

core::Limits limits_at(const pg::Rows& rows, std::uint64_t row, const Queue& queue) {
  return limits_of(queue, rows.int4_or_null(row, kMaxAttempts),
                   rows.int4_or_null(row, kMaxCrashes));
}

// One turn's rows: those that are handed out, and those whose limits are reached.
struct Turn {
  std::vector<pg::Value> taken;
  std::vector<std::uint64_t> claimed;
  std::vector<Ended> dead;
};

Turn judge(const pg::Rows& rows, const Queue& queue) {
  Turn turn;
  for (std::uint64_t row = 0; row < rows.size(); ++row) {
    turn.taken.push_back(rows.at(row, kTid));
    core::Verdict verdict =
        core::verdict_on_ready(counters_at(rows, row), limits_at(rows, row, queue));
    if (verdict.fate == core::Fate::again)
      turn.claimed.push_back(row);
    else
      turn.dead.push_back({.job_id = rows.int8(row, kJobId),
                           .queue_id = queue.queue_id,
                           .counters = counters_at(rows, row),
                           .state = kDead,
                           .reason = pg::text(verdict.reason)});
  }
  return turn;
}

struct Lease {
  TimestampTz claimed_at;
  core::Microseconds length;
  TimestampTz expires_at;
};

void move(const pg::Rows& rows, const Turn& turn, const Queue& queue, const Claim& claim,
          const Lease& lease) {
  delete_ready.run({pg::array_of(TIDOID, turn.taken)});
  pg::NewRows leases(into_lease);
  for (std::uint64_t row : turn.claimed)
    leases.add({rows.at(row, kJobId), pg::int8(queue.queue_id),
                pg::int4(rows.int4(row, kAttempt) + 1), pg::int4(rows.int4(row, kTries) + 1),
                rows.at(row, kCrashes), rows.at(row, kIsKeyed), claim.worker,
                pg::instant(lease.claimed_at), pg::int8(lease.length),
                pg::instant(lease.expires_at)});
  leases.insert();
  finish(turn.dead, lease.claimed_at);
}

void hand_out(pg::ResultSet& set, const pg::Rows& rows, const Turn& turn, const Queue& queue,
              const Lease& lease) {
  pg::Value queue_name = pg::text(queue.name);
  for (std::uint64_t row : turn.claimed)
    set.add({rows.at(row, kJobId), pg::int4(rows.int4(row, kAttempt) + 1), rows.at(row, kTask),
             rows.at(row, kPayload), queue_name, rows.at(row, kGroupKey), rows.at(row, kHeaders),
             pg::int4(rows.int4(row, kTries) + 1),
             pg::int4(limits_at(rows, row, queue).max_attempts), rows.at(row, kCrashes),
             rows.at(row, kPriority), rows.at(row, kLastError), rows.at(row, kEnqueuedAt),
             pg::instant(lease.expires_at)});
}

constexpr pg::Parameter kQueue{0, "queue"};
constexpr pg::Parameter kQueues{0, "queues"};

Datum claim(pg::Call& call) {
  std::string_view queue = check_queue_name(call.text_or_null(kQueue).value_or(kDefaultQueue));
  Claim claim = read_claim(call, 1);
  pg::ResultSet set(call);
  claim_from_queue(set, queue, claim);
  return set.done();
}

Datum claim_from(pg::Call& call) {
  std::vector<std::string_view> queues = call.texts(kQueues);
  for (std::string_view queue : queues) check_queue_name(queue);
  Claim claim = read_claim(call, 1);
  pg::ResultSet set(call);
  for (std::string_view queue : queues) {
    claim.max_jobs -= claim_from_queue(set, queue, claim);
    if (claim.max_jobs == 0) break;
  }
  return set.done();
}

} // namespace

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

// Two claims never get the same row: each holds the rows that it locked until its transaction
// ends, and passes over those that another holds. A round that buried jobs looks for as many
// others, so jobs that reached their limits do not stand in front of healthy ones.
std::int32_t claim_from_queue(pg::ResultSet& set, std::string_view name, const Claim& claim) {
  std::optional<Queue> queue = share_queue_if_made(name);
  if (!queue || queue->is_paused) return 0;

  pg::look_at_clocks();
  core::Microseconds length = claim.lease.value_or(queue->lease);
  std::int32_t claimed = 0;
  while (claimed < claim.max_jobs) {
    const pg::TurnMemory memory;
    auto wanted = static_cast<std::uint64_t>(claim.max_jobs - claimed);
    pg::Rows rows = next_ready.run({pg::int8(queue->queue_id)}, wanted);
    if (rows.empty()) break;

    if (!settings::async_claims) pg::make_commit_durable();
    TimestampTz now = pg::now();
    const Lease lease = {.claimed_at = now, .length = length, .expires_at = now + length};
    Turn turn = judge(rows, *queue);
    move(rows, turn, *queue, claim, lease);
    hand_out(set, rows, turn, *queue, lease);
    claimed += static_cast<std::int32_t>(turn.claimed.size());
    if (rows.size() < wanted) break;
  }
  return claimed;
}

JOBQ_WRITING(jobq_claim, claim)
JOBQ_WRITING(jobq_claim_from, claim_from)

} // namespace jobq::queue
