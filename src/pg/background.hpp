// Background workers: how they are registered, started and asked to leave, and their life around
// the loop of the one that calls.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/duration.hpp"
#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/memory.hpp"

extern "C" {
#include "postmaster/bgworker.h"
}

namespace jobq::pg {

struct WorkerKind {
  const char* type; // as in pg_stat_activity.backend_type
  const char* main; // the door's name
};

// Started by the server whenever it has begun to accept writes, and again a second after it ended
// with an error. To be called by _PG_init while the server preloads its libraries.
void register_worker(const WorkerKind& kind);

// Started once, for a database. The caller's latch is set when it starts and when it ends.
struct Start {
  Oid database;
  std::uint64_t ticket;  // for my_ticket()
  Oid role = InvalidOid; // for my_start_role()
};
class StartedWorker {
 public:
  enum class State { starting, running, stopped };
  State state() const;

  StartedWorker(StartedWorker&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  StartedWorker& operator=(StartedWorker&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~StartedWorker();

 private:
  friend std::optional<StartedWorker> start_worker(const WorkerKind&, const Start&);
  explicit StartedWorker(BackgroundWorkerHandle* handle) : handle_(handle) {}
  BackgroundWorkerHandle* handle_;
};
// Nothing: all places of max_worker_processes are taken.
std::optional<StartedWorker> start_worker(const WorkerKind& kind, const Start& start);

// The worker itself.

Oid my_start_database();
std::uint64_t my_ticket();
Oid my_start_role();

// Without a database only the catalogs that all databases share can be read. From here on SIGTERM
// asks the loop to leave, and cancels the transaction that it is in; so it does while connecting,
// which then raises.
void connect_to_database(Oid database);
// As a client that logs in as the role: with its rights and its settings.
void connect_as(Oid database, Oid role);
void connect_to_no_database();

bool is_asked_to_leave();
void ask_to_leave(int process_id); // sends SIGTERM; the process must be known to live
void poke(int process_id);         // sends SIGUSR2, which wakes it (client_command); the same

// Sleeps, and reads a changed configuration file; returns whether it did.
bool rest(core::Microseconds longest, const char* reason);

// Ends the process. With an error the server starts a registered worker again.
[[noreturn]] void leave_quietly();
[[noreturn]] void leave_to_be_restarted();
[[noreturn]] void leave_with(const Error& error); // the same, and says so

// One round of a worker's loop, in memory of its own. A cancellation outside of a transaction is
// meant for nothing in particular, and dropped.
template <typename Body>
void in_round(Body body) {
  const TurnMemory memory;
  const ErrorHome home(CurrentMemoryContext);
  try {
    body();
  } catch (const Error& error) {
    if (error.sqlstate() != ERRCODE_QUERY_CANCELED) leave_with(error);
  }
}

void show_idle();
void show_busy(const char* what);

// A setting of this process, whatever the server's or the database's is from now on. One that the
// server does not know is none.
void fix_setting(const char* name, const char* value);

// Whether default_transaction_read_only is on, as hosts set it for a full disk.
bool is_read_only();

std::string my_database_name();

// Whether a process is still connected: seen by those who count a database's sessions.
bool is_connected(int process_id);

} // namespace jobq::pg

// A worker's door: JOBQ_WORKER(name, body), with body a void function.
#define JOBQ_WORKER(name, body)                                                                    \
  extern "C" JOBQ_EXPORT void name(Datum);                                                         \
  void name(Datum) { ::jobq::pg::enter_init(body); }
