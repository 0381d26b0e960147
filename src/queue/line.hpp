// The lines: where a job stands. Every move of a job is a row taken out of one line and a row put
// into another in one transaction; this room has all of the puts, and the takes by job.
//
// Order of locks, for all verbs: the queue (shared), the job's row in its line, its key, its job
// row. Whoever holds the row in the line decides the job's fate alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokens.hpp"
#include "core/verdict.hpp"
#include "pg/clock.hpp"
#include "pg/value.hpp"

namespace jobq::queue {

inline constexpr const char* kJobNumber = "job_number";

// A live job that goes (back) into a waiting line: delayed if run_at lies ahead, else ready,
// behind what is ready already.
struct Waiting {
  std::int64_t job_id = 0;
  std::int64_t queue_id = 0;
  std::int32_t priority = 0;
  pg::Value group_key = pg::null(TEXTOID);
  core::Counters counters;
  std::optional<TimestampTz> run_at = std::nullopt;
};

enum class Line { ready, delayed };

// In the order given. Returns the line of the last one.
Line put_waiting(std::span<const Waiting> jobs, TimestampTz now);

// A live job that is over. Its key is free from here on.
struct Ended {
  std::int64_t job_id = 0;
  std::int64_t queue_id = 0;
  core::Counters counters;
  std::string_view state; // completed, cancelled or dead
  pg::Value reason = pg::null(TEXTOID);
  pg::Value result = pg::null(JSONBOID);
  pg::Value worker = pg::null(TEXTOID);
  pg::Value claimed_at = pg::null(TIMESTAMPTZOID);
  bool may_have_key = true;      // false spares the look
  bool may_have_failures = true; // the same
};

inline constexpr std::string_view kCompleted = "completed";
inline constexpr std::string_view kCancelled = "cancelled";
inline constexpr std::string_view kDead = "dead";

// Into the line of finished jobs for the queue's keep time; with a keep time of 0 they are
// forgotten. A death is one line in the log.
void finish(std::span<const Ended> jobs, TimestampTz now);

// Deletes the jobs themselves, with their failures.
void forget_jobs(std::span<const std::int64_t> job_ids);

// A lease that was taken out of its line.
struct TakenLease {
  std::int64_t job_id = 0;
  std::int64_t queue_id = 0;
  core::Counters counters;
  pg::Value worker;
  pg::Value claimed_at;
  std::optional<std::int64_t> replaced_by = std::nullopt;
  bool is_keyed = true;
};

// The leases that these tokens hold, in job_id order. A concurrent renew is waited for and changes
// nothing; a concurrent sweep or cancel that commits has won.
std::vector<TakenLease> take_leases(const core::TokenGroup& group);

// Where a live job was, after it was taken out of there.
struct TakenJob {
  std::int64_t queue_id = 0;
  core::Counters counters;
  std::optional<TimestampTz> run_at = std::nullopt; // of a delayed one
  bool was_running = false;
  pg::Value worker = pg::null(TEXTOID);            // of a running one
  pg::Value claimed_at = pg::null(TIMESTAMPTZOID); // of a running one
};

enum class Which { waiting, live };

// Takes the job out of the waiting lines, or out of any live line. Nothing: it stands in none.
std::optional<TakenJob> take_job(std::int64_t job_id, Which which);

} // namespace jobq::queue
