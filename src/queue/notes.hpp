// What the verbs note while they work, and what becomes of it when the transaction ends: sleepers
// are woken when the rows can be seen, and when rows that were taken out of ready are back.
#pragma once

#include <cstdint>

#include "core/duration.hpp"
#include "queue/agenda.hpp"
#include "queue/executors.hpp"

namespace jobq::queue {

// To be called once, by _PG_init.
void watch_notes();

// So many rows were put into ready (seen by others from the commit on), or taken out of it (back at
// the abort).
void note_ready(std::int64_t queue_id, std::int64_t jobs);
void note_taken(std::int64_t queue_id, std::int64_t jobs);
// Before a statement that takes all it finds: it may fail when it has taken some.
void note_all_taken(std::int64_t queue_id);

// The queue was resumed or dropped: all who wait for it are to look again. It was made: who knew an
// older one of its name wants to hear of its first job.
void note_queue(std::int64_t queue_id);
void note_new_queue(std::int64_t queue_id);

// The attempt, of a SQL job, has lost its lease: whoever runs it is to stop.
void note_stop(const Attempt& attempt);

// A row with this instant was put into a line.
void note_instant(Chore chore, core::Microseconds instant);
// Where the rows that this transaction has put into the line begin: others are not told yet.
core::Place first_noted(Chore chore);

} // namespace jobq::queue
