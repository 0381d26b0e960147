// What became of each instant of a schedule: one row, by its key, so that no instant is dealt with
// twice, whoever believes to be the one who does it.
#pragma once

#include <optional>
#include <string_view>

#include "schedule/schedule.hpp"

namespace jobq::schedule {

// Whether something became of it before.
bool is_noted(const Schedule& schedule, TimestampTz run_at);

void note_enqueued(const Schedule& schedule, TimestampTz run_at, std::int64_t job_id,
                   std::string_view reason, TimestampTz now);
void note_waiting(const Schedule& schedule, TimestampTz run_at, TimestampTz now);
void note_skipped(const Schedule& schedule, TimestampTz run_at, std::string_view reason,
                  TimestampTz now);

// Those that have a row keep it.
void note_missed(const Schedule& schedule, const core::Due& due, std::string_view reason,
                 TimestampTz now);

// What became of the instant that waited; with a job it was made, else it is skipped.
void end_waiting(const Schedule& schedule, std::optional<std::int64_t> job_id,
                 std::string_view reason, TimestampTz now);

// The clock fell back: what was missed after this instant is still to come.
void forget_missed_after(const Schedule& schedule, TimestampTz instant);

// Deletes a page of rows that were kept long enough; one that waits, or whose job is still there,
// stays as long as that. False: there was less than a page.
bool prune_runs(TimestampTz now);

} // namespace jobq::schedule
