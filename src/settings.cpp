#include "settings.hpp"

#include "pg/extension.hpp"
#include "pg/setting.hpp"

namespace jobq::settings {

int claim_in_transaction = kWarn;
bool async_claims = false;
int sweep_grace = 30'000;
bool enabled = true;
int sweep_interval = 1000;
int database_scan_interval = 300;
int max_lanes = 2048;
int max_groups = 16'384;
bool reread_lanes = true;
int sql_workers = 2;
bool superuser_sql = true;

namespace {

constexpr config_enum_entry kClaimInTransaction[] = {{"warn", kWarn, false},
                                                     {"allow", kAllow, false},
                                                     {"error", kError, false},
                                                     {nullptr, 0, false}};

// For what is read when the server lays out shared memory. It refuses to hear of more such settings
// later on, and a library that is not preloaded has none of that memory.
GucContext at_start() { return pg::is_preloaded() ? PGC_POSTMASTER : PGC_SIGHUP; }

} // namespace

void define() {
  pg::define_choice({.name = "jobq.claim_in_transaction",
                     .sentence = "What a claim inside a transaction block does: warn once a "
                                 "session, allow, or error.",
                     .context = PGC_USERSET},
                    &claim_in_transaction, kWarn, kClaimInTransaction);
  pg::define_switch({.name = "jobq.async_claims",
                     .sentence = "Lets claims follow synchronous_commit: a crash may forget that "
                                 "an attempt was started.",
                     .context = PGC_SUSET},
                    &async_claims, false);
  pg::define_number({.name = "jobq.sweep_grace",
                     .sentence = "Time that leases taken before a restart or a leap of the clock "
                                 "have to be renewed before they expire.",
                     .context = PGC_SIGHUP,
                     .flags = GUC_UNIT_MS},
                    &sweep_grace, {.default_value = 30'000, .least = 0, .most = 3'600'000});
  pg::define_switch({.name = "jobq.enabled",
                     .sentence = "Lets the background processes work.",
                     .context = PGC_SIGHUP},
                    &enabled, true);
  pg::define_number({.name = "jobq.sweep_interval",
                     .sentence = "Longest time between two looks of a manager at what is due.",
                     .context = PGC_SIGHUP,
                     .flags = GUC_UNIT_MS},
                    &sweep_interval, {.default_value = 1000, .least = 1, .most = 60'000});
  pg::define_number({.name = "jobq.database_scan_interval",
                     .sentence = "Time between two looks of the launcher at all databases, whether "
                                 "they have the extension.",
                     .context = PGC_SIGHUP,
                     .flags = GUC_UNIT_S},
                    &database_scan_interval, {.default_value = 300, .least = 1, .most = 86'400});
  pg::define_number({.name = "jobq.max_lanes",
                     .sentence = "Pairs of queue and priority whose ready jobs are claimed without "
                                 "a look at the ones before; more are slower.",
                     .context = at_start()},
                    &max_lanes, {.default_value = 2048, .least = 0, .most = 1'000'000});
  pg::define_number({.name = "jobq.max_groups",
                     .sentence =
                         "Groups with a backlog that take turns; more queue behind all that "
                         "is ready.",
                     .context = at_start()},
                    &max_groups, {.default_value = 16'384, .least = 0, .most = 10'000'000});
  pg::define_switch({.name = "jobq.reread_lanes",
                     .sentence =
                         "Lets managers look for ready jobs that claims would miss; off only "
                         "in tests, which prove that there are none.",
                     .context = PGC_SIGHUP,
                     .flags = GUC_NOT_IN_SAMPLE},
                    &reread_lanes, true);
  pg::define_number({.name = "jobq.sql_workers",
                     .sentence = "Processes that run SQL jobs in a database at the same time; "
                                 "each needs a place of max_worker_processes.",
                     .context = PGC_SUSET},
                    &sql_workers, {.default_value = 2, .least = 0, .most = 1000});
  pg::define_switch({.name = "jobq.superuser_sql",
                     .sentence = "Lets SQL jobs run as superusers.",
                     .context = PGC_SIGHUP},
                    &superuser_sql, true);
  pg::reserve_prefix();
}

} // namespace jobq::settings
