// The module's door.
#include "pg/compat.hpp"
#include "pg/door.hpp"
#include "pg/extension.hpp"
#include "pg/log.hpp"
#include "pg/planner.hpp"
#include "pg/transaction.hpp"
#include "pg/watch.hpp"
#include "queue/queue.hpp"
#include "settings.hpp"

extern "C" {
#pragma GCC visibility push(default)
JOBQ_MODULE_MAGIC;
#pragma GCC visibility pop
JOBQ_EXPORT void _PG_init(void);
}

namespace {

void init() {
  jobq::pg::note_load();
  jobq::settings::define();
  jobq::pg::watch_planner();
  jobq::pg::watch_log();
  jobq::pg::watch_transactions();
  jobq::queue::watch_settings();
  if (jobq::pg::is_preloaded()) jobq::pg::request_watch();
}

} // namespace

void _PG_init(void) { jobq::pg::enter_init(init); }
