// What an operator looks at first: is everything there that jobq needs, and does it keep up.
#include <optional>
#include <string>

#include "pg/background.hpp"
#include "pg/clock.hpp"
#include "pg/databases.hpp"
#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/extension.hpp"
#include "pg/result_set.hpp"
#include "pg/session.hpp"
#include "pg/statement.hpp"
#include "queue/agenda.hpp"
#include "settings.hpp"
#include "worker/roster.hpp"

namespace jobq::worker {

namespace {

// Each returns (ok, message). $1 is how late is too late, in seconds.
#define JOBQ_AGE(since)                                                                            \
  "pg_catalog.date_trunc('milliseconds', pg_catalog.clock_timestamp() "                            \
  "OPERATOR(pg_catalog.-) " since ")"
#define JOBQ_IS_LATE(since)                                                                        \
  JOBQ_AGE(since) " OPERATOR(pg_catalog.>) pg_catalog.make_interval(secs => $1)"

constinit pg::Statement lag_of_due_jobs("SELECT d.run_at IS NULL OR NOT (" JOBQ_IS_LATE(
    "d.run_at") "), CASE WHEN d.run_at IS NULL"
                " THEN 'no job is due' ELSE pg_catalog.format('a job is due since %s and still "
                "delayed',"
                " " JOBQ_AGE(
                    "d.run_at") ") END"
                                " FROM (SELECT pg_catalog.min(run_at) AS run_at FROM jobq.delayed"
                                " WHERE run_at OPERATOR(pg_catalog.<) "
                                "pg_catalog.clock_timestamp()) AS d");

constinit pg::Statement expired_leases("SELECT l.expires_at IS NULL OR NOT (" JOBQ_IS_LATE(
    "l.expires_at") "), CASE"
                    " WHEN l.expires_at IS NULL THEN 'no lease has expired'"
                    " ELSE pg_catalog.format('%s leases have expired, the first %s ago, and are "
                    "not swept yet',"
                    " l.leases, " JOBQ_AGE(
                        "l.expires_at") ") END"
                                        " FROM (SELECT pg_catalog.min(expires_at) AS expires_at, "
                                        "pg_catalog.count(*) AS leases"
                                        " FROM jobq.lease WHERE expires_at OPERATOR(pg_catalog.<) "
                                        "pg_catalog.clock_timestamp()) AS l");

// A standby's feedback has no transaction of its own here, so its age is counted in transactions.
constinit pg::Statement oldest_snapshot(
    "SELECT CASE WHEN a.pid IS NULL THEN true WHEN a.xact_start IS NULL"
    " THEN a.age OPERATOR(pg_catalog.<) 10000000 ELSE NOT (" JOBQ_IS_LATE(
        "a.xact_start") ") END,"
                        " CASE WHEN a.pid IS NULL THEN 'nobody else holds a snapshot' ELSE "
                        "pg_catalog.format("
                        "'process %s (%s, %s) holds a snapshot %s transactions old%s', a.pid,"
                        " COALESCE(NULLIF(a.application_name, ''), a.backend_type), "
                        "COALESCE(a.state, 'no state'),"
                        " a.age, ', in a transaction that began ' OPERATOR(pg_catalog.||)"
                        " (" JOBQ_AGE(
                            "a.xact_start") ")::pg_catalog.text OPERATOR(pg_catalog.||) ' ago') END"
                                            " FROM (SELECT) AS one LEFT JOIN (SELECT pid, "
                                            "application_name, backend_type, state,"
                                            " xact_start, pg_catalog.age(backend_xmin) AS age FROM "
                                            "pg_catalog.pg_stat_activity"
                                            " WHERE backend_xmin IS NOT NULL AND pid "
                                            "OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()"
                                            " AND backend_type OPERATOR(pg_catalog.<>) 'autovacuum "
                                            "worker'"
                                            " ORDER BY pg_catalog.age(backend_xmin) DESC, "
                                            "xact_start LIMIT 1) AS a ON true");

constinit pg::Statement prepared_transactions("SELECT p.gid IS NULL OR NOT (" JOBQ_IS_LATE(
    "p.prepared") "), CASE"
                  " WHEN p.gid IS NULL THEN 'there is no prepared transaction' ELSE "
                  "pg_catalog.format("
                  "'%s prepared transactions, the oldest, %L, for %s', p.transactions, p.gid,"
                  " " JOBQ_AGE("p.prepared") ") END"
                                             " FROM (SELECT) AS one LEFT JOIN (SELECT gid, "
                                             "prepared, pg_catalog.count(*) OVER () AS"
                                             " transactions FROM pg_catalog.pg_prepared_xacts "
                                             "ORDER BY prepared LIMIT 1) AS p ON true");

// Places that processes have at this moment; parallel workers are let in and out all the time.
constinit pg::Statement free_workers(
    "SELECT w.taken OPERATOR(pg_catalog.<) w.most, pg_catalog.format("
    "'%s of %s background worker slots (max_worker_processes) are free',"
    " GREATEST(w.most OPERATOR(pg_catalog.-) w.taken, 0), w.most)"
    " FROM (SELECT pg_catalog.current_setting('max_worker_processes')::bigint AS most,"
    " (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type"
    " OPERATOR(pg_catalog.<>) ALL (ARRAY['client backend', 'autovacuum launcher',"
    " 'autovacuum worker', 'checkpointer', 'background writer', 'walwriter', 'walsender',"
    " 'walreceiver', 'startup', 'archiver', 'logger', 'walsummarizer', 'slotsync worker',"
    " 'standalone backend', 'io worker'])) AS taken) AS w");

constexpr std::int64_t kLateSeconds = 10;
constexpr std::int64_t kLongSeconds = 300;

std::string seconds(core::Microseconds length) {
  std::string tenths = std::to_string(length / (core::kSecond / 10));
  if (tenths.size() == 1) tenths.insert(0, 1, '0');
  return tenths.insert(tenths.size() - 1, 1, '.') + " s";
}

// Why no manager would come to this database, if none would.
std::optional<std::string> why_nothing_runs() {
  if (!pg::is_preloaded()) return "shared_preload_libraries does not have jobq";
  if (!settings::enabled) return "jobq.enabled is off";
  if (!pg::is_worked_in(pg::my_database()))
    return "the database is a template or allows no connections";
  if (launcher_process_id() == 0) return "the jobq launcher is not running";
  return std::nullopt;
}

class Report {
 public:
  explicit Report(pg::Call& call) : set_(call) {}

  void add(std::string_view check, bool is_ok, std::string_view message) {
    set_.add({pg::text(check), pg::boolean(is_ok), pg::text(message)});
  }
  void add(std::string_view check, pg::Statement& statement, std::int64_t limit) {
    pg::Rows rows = statement.run_freely({pg::float8(static_cast<double>(limit))});
    add(check, rows.boolean(0, 0), rows.text(0, 1));
  }
  Datum done() { return set_.done(); }

 private:
  pg::ResultSet set_;
};

void report_manager(Report& report) {
  if (pg::is_in_recovery())
    return report.add("manager", true, "the server is in recovery: managers start at promotion");
  std::optional<queue::ManagerReport> manager = queue::report_on_manager(pg::my_database());
  if (!manager) {
    std::optional<std::string> why = why_nothing_runs();
    report.add("manager", false,
               "no manager looks after this database: " +
                   why.value_or("it has not come up yet; see the server's log"));
    return;
  }
  core::Microseconds now = pg::now();
  report.add("manager", true,
             "process " + std::to_string(manager->process_id) + " manages this database since " +
                 seconds(now - manager->since));
  core::Microseconds silent = now - std::max(manager->swept_at, manager->since);
  report.add("last sweep", silent < kLateSeconds * core::kSecond,
             "the manager was last at work " + seconds(silent) + " ago");
}

void report_work(Report& report) {
  std::int64_t grace = settings::sweep_grace / 1000 + kLateSeconds;
  report.add("due jobs", lag_of_due_jobs, kLateSeconds);
  report.add("expired leases", expired_leases, grace);
}

void report_server(Report& report) {
  report.add("oldest snapshot", oldest_snapshot, kLongSeconds);
  report.add("prepared transactions", prepared_transactions, kLongSeconds);
  report.add("worker slots", free_workers, 0);
}

Datum health(pg::Call& call) {
  Report report(call);
  if (!pg::is_preloaded()) {
    report.add("preloaded", false, *why_nothing_runs() + ": put it there and restart the server");
    return report.done();
  }
  report.add("preloaded", true, "the library was loaded at the server's start");
  std::string version = pg::installed_version();
  bool is_fit = version == JOBQ_VERSION;
  report.add("version", is_fit,
             "the extension has version " + version + ", the library " JOBQ_VERSION);
  report_manager(report);
  if (is_fit) report_work(report);
  report_server(report);
  return report.done();
}

Datum warn_if_nothing_runs(pg::Call& call) {
  std::optional<std::string> why = why_nothing_runs();
  if (why)
    pg::warn({.sqlstate = pg::SqlState::warning,
              .message = "no jobq manager will look after this database: " + *why,
              .detail = "Delayed jobs do not become ready, and the jobs of dead workers do not "
                        "come back, unless somebody calls jobq.sweep().",
              .hint = "SELECT * FROM jobq.health() says what is missing."});
  return call.returns_nothing();
}

} // namespace

JOBQ_DOOR(jobq_health) { return pg::enter(fcinfo, pg::Access::reports, health); }
JOBQ_DOOR(jobq_warn_if_nothing_runs) {
  return pg::enter(fcinfo, pg::Access::reports, warn_if_nothing_runs);
}

} // namespace jobq::worker
