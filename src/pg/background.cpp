#include "pg/background.hpp"

#include <csignal>
#include <cstring>

#include "pg/client_command.hpp"
#include "pg/log.hpp"
#include "pg/sleep.hpp"

extern "C" {
#include "commands/dbcommands.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/procarray.h"
#include "tcop/tcopprot.h"
}

namespace jobq::pg {

namespace {

constexpr int kRestartSeconds = 1;

volatile std::sig_atomic_t is_leaving = 0;

// What a worker is started for, as it is handed to it.
struct Errand {
  std::uint64_t ticket;
  Oid role;
};

Errand my_errand() {
  Errand errand{};
  std::memcpy(&errand, MyBgworkerEntry->bgw_extra, sizeof errand);
  return errand;
}

// A worker in the middle of a transaction is cancelled, so that it need not be terminated, which
// would be a line in the log. One that runs commands is cancelled at any time: it may be between
// two transactions of a command, or wait for a standby.
void on_terminate(SIGNAL_ARGS) {
  int before = errno;
  is_leaving = 1;
  if (IsTransactionState() || accepts_commands()) {
    InterruptPending = true;
    QueryCancelPending = true;
  }
  SetLatch(MyLatch);
  errno = before;
}

BackgroundWorker worker_of(const WorkerKind& kind) {
  BackgroundWorker worker{};
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
  strlcpy(worker.bgw_name, kind.type, BGW_MAXLEN);
  strlcpy(worker.bgw_type, kind.type, BGW_MAXLEN);
  strlcpy(worker.bgw_library_name, "jobq", sizeof worker.bgw_library_name);
  strlcpy(worker.bgw_function_name, kind.main, BGW_MAXLEN);
  return worker;
}

BackgroundWorkerHandle* register_start(BackgroundWorker worker) {
  BackgroundWorkerHandle* handle = nullptr;
  MemoryContext before = MemoryContextSwitchTo(TopMemoryContext);
  bool is_registered = RegisterDynamicBackgroundWorker(&worker, &handle);
  MemoryContextSwitchTo(before);
  return is_registered ? handle : nullptr;
}

void accept_signals() {
  pqsignal(SIGHUP, SignalHandlerForConfigReload);
  pqsignal(SIGTERM, on_terminate);
  BackgroundWorkerUnblockSignals();
}

void connect_by_oid(Oid database, Oid role) {
  accept_signals();
  BackgroundWorkerInitializeConnectionByOid(database, role, 0);
}

void connect_nowhere() {
  accept_signals();
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
}

void reload() { ProcessConfigFile(PGC_SIGHUP); }

void set_fixed(const char* name, const char* value) {
  if (GetConfigOption(name, true, false) == nullptr) return;
  SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
}

char* read_database_name() { return get_database_name(MyDatabaseId); }

void report(BackendState state, const char* what) { pgstat_report_activity(state, what); }

} // namespace

void register_worker(const WorkerKind& kind) {
  BackgroundWorker worker = worker_of(kind);
  worker.bgw_restart_time = kRestartSeconds;
  RegisterBackgroundWorker(&worker);
}

std::optional<StartedWorker> start_worker(const WorkerKind& kind, const Start& start) {
  BackgroundWorker worker = worker_of(kind);
  worker.bgw_restart_time = BGW_NEVER_RESTART;
  worker.bgw_notify_pid = MyProcPid;
  worker.bgw_main_arg = ObjectIdGetDatum(start.database);
  const Errand errand = {.ticket = start.ticket, .role = start.role};
  static_assert(sizeof errand <= BGW_EXTRALEN);
  std::memcpy(worker.bgw_extra, &errand, sizeof errand);
  BackgroundWorkerHandle* handle = guarded<register_start>(worker);
  if (handle == nullptr) return std::nullopt;
  return StartedWorker(handle);
}

StartedWorker::~StartedWorker() {
  if (handle_ != nullptr) pfree(handle_);
}

StartedWorker::State StartedWorker::state() const {
  pid_t process_id = 0;
  switch (GetBackgroundWorkerPid(handle_, &process_id)) {
  case BGWH_NOT_YET_STARTED:
    return State::starting;
  case BGWH_STARTED:
    return State::running;
  default:
    return State::stopped;
  }
}

Oid my_start_database() { return DatumGetObjectId(MyBgworkerEntry->bgw_main_arg); }

std::uint64_t my_ticket() { return my_errand().ticket; }

Oid my_start_role() { return my_errand().role; }

void connect_to_database(Oid database) { guarded<connect_by_oid>(database, InvalidOid); }

void connect_as(Oid database, Oid role) { guarded<connect_by_oid>(database, role); }

void connect_to_no_database() { guarded<connect_nowhere>(); }

bool is_asked_to_leave() { return is_leaving != 0; }

void ask_to_leave(int process_id) { kill(process_id, SIGTERM); }

void poke(int process_id) { kill(process_id, SIGUSR2); }

bool rest(core::Microseconds longest, const char* reason) {
  if (ConfigReloadPending == 0) sleep(longest, reason);
  if (ConfigReloadPending == 0) return false;
  ConfigReloadPending = 0;
  guarded<reload>();
  return true;
}

void leave_quietly() { proc_exit(0); }

void leave_to_be_restarted() { proc_exit(1); }

void leave_with(const Error& error) {
  log_now(std::string(MyBgworkerEntry->bgw_type) + " ends: " + error.message());
  leave_to_be_restarted();
}

void show_idle() { guarded<report>(STATE_IDLE, ""); }

void show_busy(const char* what) { guarded<report>(STATE_RUNNING, what); }

void fix_setting(const char* name, const char* value) { guarded<set_fixed>(name, value); }

bool is_read_only() { return DefaultXactReadOnly; }

std::string my_database_name() { return guarded<read_database_name>(); }

bool is_connected(int process_id) { return BackendPidGetProc(process_id) != nullptr; }

} // namespace jobq::pg
