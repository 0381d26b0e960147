// The module's door.
#include "pg/command.hpp"
#include "pg/compat.hpp"
#include "pg/door.hpp"
#include "pg/extension.hpp"
#include "pg/log.hpp"
#include "pg/planner.hpp"
#include "pg/transaction.hpp"
#include "pg/watch.hpp"
#include "queue/agenda.hpp"
#include "queue/doors.hpp"
#include "queue/executors.hpp"
#include "queue/group.hpp"
#include "queue/lanes.hpp"
#include "queue/notes.hpp"
#include "queue/queue.hpp"
#include "settings.hpp"
#include "worker/launcher.hpp"
#include "worker/roster.hpp"

extern "C" {
#pragma GCC visibility push(default)
JOBQ_MODULE_MAGIC;
#pragma GCC visibility pop
JOBQ_EXPORT void _PG_init(void);
}

namespace {

// What shared memory and processes need: only while the server starts.
void prepare_server() {
  jobq::pg::watch_commands();
  jobq::pg::request_watch();
  jobq::queue::request_agenda();
  jobq::queue::request_doors();
  jobq::queue::request_lanes();
  jobq::queue::request_executors();
  jobq::queue::watch_lanes();
  jobq::queue::watch_notes();
  jobq::worker::request_roster();
  jobq::worker::register_launcher();
}

void init() {
  jobq::pg::note_load();
  jobq::settings::define();
  jobq::pg::watch_planner();
  jobq::pg::watch_log();
  jobq::pg::watch_transactions();
  jobq::queue::watch_settings();
  jobq::queue::watch_weights();
  if (jobq::pg::is_preloaded()) prepare_server();
}

} // namespace

void _PG_init(void) { jobq::pg::enter_init(init); }
