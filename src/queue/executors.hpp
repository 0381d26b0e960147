// The executors, processes that run SQL jobs: which database and role each is for, and the attempt
// that it has in hand. Kept in shared memory: so a manager knows whose leases to renew, and
// cancel() whom to stop. Truth is in the tables: a seat that is lost costs its job's lease, no
// more.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/duration.hpp"

namespace jobq::queue {

// To be called once, by _PG_init while the server preloads its libraries.
void request_executors();

struct Attempt {
  std::int64_t job_id = 0; // 0: none
  std::int32_t attempt = 0;

  bool operator==(const Attempt&) const = default;
};

// A seat's life: opened -> idle <-> busy -> left -> free. A process that ends before it is ready
// leaves `failed`, one that ends with an attempt in hand `died`; when that was heard, they are
// left. A seat that was left is free when the process is gone: so there are never more than seats.
enum class Stage { opened, idle, busy, failed, died, left };

struct Seat {
  std::uint64_t ticket = 0; // 0: free
  std::uint32_t database = 0;
  std::uint32_t role = 0;
  std::int32_t process_id = 0; // 0: it has not come in yet
  Stage stage = Stage::opened;
  Attempt attempt = {};
  bool is_claiming = false;     // the claim's commit is still to come
  bool is_stopped = false;      // the attempt has lost its lease
  bool is_recalled = false;     // another role needs the place
  core::Microseconds since = 0; // it was opened, or left; by the monotonic clock
};

// Sessions. These raise nothing and may be called when a transaction ends.

// The attempt has lost its lease: if an executor of this database has it in hand, it stops it.
void stop_execution(const Attempt& attempt);
// Asks the executors of a database to leave, but for this process; returns those that are there.
std::vector<int> dismiss_executors(std::uint32_t database);

// The manager, for its database.

// The ticket with which an executor may come in; nothing if there is no seat at all.
std::optional<std::uint64_t> open_seat(std::uint32_t role, core::Microseconds now);
void close_seat(std::uint64_t ticket); // if nobody has come in
// All seats of the database, with what became of those that were left; to be heard once.
std::vector<Seat> collect_seats();
// Of one that was left: its process is still there.
bool is_leaving(const Seat& seat);
// Whether it is to leave when it has nothing in hand.
void recall(std::uint64_t ticket, bool is_recalled);

// All seats of the database, for whoever wants to know.
std::vector<Seat> seats_of(std::uint32_t database);

// An executor.

// False: the ticket is not valid. The seat is left when the process ends.
bool sit_down(std::uint64_t ticket);
// It is connected, or has nothing in hand any more.
void become_idle();
// To be called before the claim's commit, and after it. False: it was cancelled in between.
void begin_execution(const Attempt& attempt);
bool is_still_wanted();
// It is in hand still: the commit that was to end it, and to begin another one, has failed.
void keep_execution(const Attempt& attempt);
// Of the attempt in hand, whether it was stopped; may be called by a signal handler.
bool is_execution_stopped();
bool is_recalled();

} // namespace jobq::queue
