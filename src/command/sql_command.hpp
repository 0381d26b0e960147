// What a SQL job runs, as whom, and for how long at most: a row beside its job's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/duration.hpp"
#include "pg/postgres.hpp"
#include "queue/enqueue.hpp"

namespace jobq::command {

inline constexpr std::size_t kLongestCommand = 1'048'576; // bytes
inline constexpr core::Microseconds kUsualTimeout = core::kHour;
inline constexpr std::string_view kTask = "sql"; // of all SQL jobs

struct SqlCommand {
  std::string text = {};
  Oid role = InvalidOid;
  std::string role_name = {};
  core::Microseconds timeout = kUsualTimeout;
};

// Raise 22023 or 42601 for a text that is too long, is none, or is not SQL; for a timeout that is
// not positive.
std::string_view check_command(std::string_view text);
core::Microseconds check_timeout(const core::Interval& timeout);

// The role that a command is to run as: the caller's, or the named one if a superuser asks. Raises
// 42501 in a security-restricted operation, and for a role whose commands may not run.
SqlCommand command_as(Oid caller, std::optional<std::string_view> run_as);
void refuse_restricted();

// Raises 42501 unless the role is the caller or the caller is a superuser.
void require_own(Oid caller, Oid role);

// Enqueues the command's job in its role's queue. The order's queue and task are of no account.
queue::Enqueued enqueue_command(queue::Order order, const SqlCommand& command);

std::optional<SqlCommand> read_command(std::int64_t job_id);

// Of the home's roles the names are what is left after a move: a role of that name is the job's. A
// job whose role is not there is nobody's, whoever has its number now.
void find_roles();

} // namespace jobq::command
