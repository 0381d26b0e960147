// The bounds of what callers may pass, each with the error that says what to do.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/duration.hpp"
#include "pg/call.hpp"

namespace jobq::queue {

inline constexpr std::string_view kDefaultQueue = "default";
inline constexpr std::int32_t kFirstPriority = 0;
inline constexpr std::int32_t kDefaultPriority = 5;
inline constexpr std::int32_t kLastPriority = 9;
inline constexpr std::int32_t kDefaultWeight = 1;
inline constexpr std::size_t kLongestName = 63; // bytes, as all of these
inline constexpr std::size_t kLongestKey = 255;
inline constexpr std::size_t kLongestText = 65'536; // of an error or reason that is kept

// A queue's, task's or worker's name: 1 to 63 bytes.
std::string_view check_name(std::string_view name, const char* what);
// The same, and not reserved (sql/...).
std::string_view check_queue_name(std::string_view name);
// SQL jobs stand in a queue of the role that they run as; no worker may claim from it.
std::string sql_queue_of(std::uint32_t role);
bool is_sql_queue(std::string_view name);
// Whether a queue of this name comes to exist with its first job.
bool comes_by_itself(std::string_view name);
// A job's or group's key: at most 255 bytes; a job's is not empty.
std::string_view check_job_key(std::string_view key);
// The same for a new job: the keys that the jobs of schedules have are not to be had.
std::string_view check_free_job_key(std::string_view key);
std::string job_key_of_schedule(std::string_view name);
std::string_view check_group_key(std::string_view key);

std::int32_t check_max_jobs(std::int32_t max_jobs, std::int32_t most);
std::int32_t check_priority(std::int32_t priority);
std::int32_t check_weight(std::int32_t weight);
std::int32_t check_limit(std::int32_t limit, const char* what);

// A length in microseconds, by the rule of core/duration.
core::Microseconds check_length(const core::Interval& interval, const char* what);
core::Microseconds check_lease(core::Microseconds length);

// An instant of the calendar that is not infinite; now + length, if the calendar reaches so far.
TimestampTz check_instant(TimestampTz instant, const char* what);
TimestampTz after(TimestampTz now, core::Microseconds length, const char* what);

// When a job is to run by its run_at or delay parameter: nothing is at once; both are an error.
std::optional<TimestampTz> run_at_of(const pg::Call& call, pg::Parameter run_at,
                                     pg::Parameter delay, TimestampTz now);

} // namespace jobq::queue
