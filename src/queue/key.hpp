// Keys: at most one live job of a queue has a given key. A row here is locked after the row of its
// job's line, never before it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace jobq::queue {

// False if a live job holds the key. A holder that is not committed yet is waited for.
bool take_key(std::int64_t queue_id, std::string_view job_key, std::int64_t job_id);

// The live job that holds the key, as the newest snapshot shows it.
std::optional<std::int64_t> key_holder(std::int64_t queue_id, std::string_view job_key);

// take_key for a job that had it before; raises 23505 naming the holder.
void retake_key(std::int64_t queue_id, std::string_view job_key, std::int64_t job_id);

// Hands the key on from a running job, whose lease this transaction has locked, to a newer one.
void pass_key(std::int64_t from, std::int64_t to);

// Raises if the holder stands in no line, by one snapshot of key and lines: they end together, so
// then a restore is under way or someone wrote to the tables by hand.
void check_holder(std::int64_t queue_id, std::string_view job_key, std::int64_t holder);

// 23505 naming the holder.
[[noreturn]] void complain_of_held_key(std::string_view job_key, std::int64_t holder);

} // namespace jobq::queue
