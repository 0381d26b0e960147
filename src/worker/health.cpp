// What an operator looks at first: is everything there that jobq needs, and does it keep up.
#include <algorithm>
#include <optional>
#include <string>

#include "command/home.hpp"
#include "command/permit.hpp"
#include "command/waiting.hpp"
#include "pg/background.hpp"
#include "pg/clock.hpp"
#include "pg/databases.hpp"
#include "pg/door.hpp"
#include "pg/error.hpp"
#include "pg/extension.hpp"
#include "pg/result_set.hpp"
#include "pg/session.hpp"
#include "pg/statement.hpp"
#include "pg/transaction.hpp"
#include "queue/agenda.hpp"
#include "queue/executors.hpp"
#include "queue/lane_states.hpp"
#include "settings.hpp"
#include "worker/roster.hpp"

namespace jobq::worker {

namespace {

// As the sweep has it, a row whose job is not there is nobody's.
constinit pg::Statement first_due("SELECT pg_catalog.min(d.run_at) FROM jobq.delayed AS d"
                                  " JOIN jobq.job AS j ON j.job_id OPERATOR(pg_catalog.=) d.job_id"
                                  " WHERE d.run_at OPERATOR(pg_catalog.<) $1");

constinit pg::Statement
    expired_leases("SELECT pg_catalog.count(*), pg_catalog.min(l.expires_at) FROM jobq.lease AS l"
                   " JOIN jobq.job AS j ON j.job_id OPERATOR(pg_catalog.=) l.job_id"
                   " WHERE l.expires_at OPERATOR(pg_catalog.<) $1");

constinit pg::Statement schedules_in_all(
    "SELECT pg_catalog.count(*), pg_catalog.count(stopped), pg_catalog.min(name) FILTER (WHERE"
    " stopped IS NOT NULL), (SELECT t.stopped FROM jobq.schedule AS t WHERE t.stopped IS NOT NULL"
    " ORDER BY t.name LIMIT 1), pg_catalog.min(next_run_at) FROM jobq.schedule");

// A standby's feedback holds a snapshot without a transaction of its own.
constinit pg::Statement
    oldest_snapshot("SELECT pid, CASE WHEN application_name OPERATOR(pg_catalog.<>) ''"
                    " THEN application_name ELSE backend_type END,"
                    " COALESCE(state, 'no state'), pg_catalog.age(backend_xmin), xact_start"
                    " FROM pg_catalog.pg_stat_activity WHERE backend_xmin IS NOT NULL"
                    " AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()"
                    " AND backend_type OPERATOR(pg_catalog.<>) 'autovacuum worker'"
                    " ORDER BY pg_catalog.age(backend_xmin) DESC, xact_start LIMIT 1");

constinit pg::Statement
    prepared_transactions("SELECT pg_catalog.count(*) OVER (), prepared, gid"
                          " FROM pg_catalog.pg_prepared_xacts ORDER BY prepared LIMIT 1");

// Places that processes have at this moment; parallel workers come and go.
constinit pg::Statement taken_workers(
    "SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type"
    " OPERATOR(pg_catalog.<>) ALL (ARRAY['client backend', 'autovacuum launcher',"
    " 'autovacuum worker', 'checkpointer', 'background writer', 'walwriter', 'walsender',"
    " 'walreceiver', 'startup', 'archiver', 'logger', 'walsummarizer', 'slotsync worker',"
    " 'standalone backend', 'io worker'])");

constexpr core::Microseconds kLate = 10 * core::kSecond;
constexpr core::Microseconds kLong = 300 * core::kSecond;
constexpr std::int32_t kManyTransactions = 10'000'000;

std::string seconds(core::Microseconds length) {
  std::string tenths = std::to_string(length / (core::kSecond / 10));
  if (tenths.size() == 1) tenths.insert(0, 1, '0');
  return tenths.insert(tenths.size() - 1, 1, '.') + " s";
}

// What somebody has put in as -infinity counts as an old instant.
core::Microseconds age(TimestampTz instant) {
  return pg::now() - std::max<TimestampTz>(instant, 0);
}

std::int64_t free_workers() {
  return std::max<std::int64_t>(pg::most_workers() - taken_workers.run_freely({}).int8(0, 0), 0);
}

// Why no manager would come to this database, if none would.
std::optional<std::string> why_nothing_runs() {
  if (!pg::is_preloaded()) return "shared_preload_libraries does not have jobq";
  if (!settings::enabled) return "jobq.enabled is off";
  if (!pg::is_worked_in(pg::my_database()))
    return "the database is a template or allows no connections";
  if (!has_launcher_been_there() && age(pg::server_start()) > kLate)
    return "the server has no place for the jobq launcher: raise max_worker_processes";
  if (free_workers() == 0) return "no background worker slot is free: raise max_worker_processes";
  return std::nullopt;
}

class Report {
 public:
  explicit Report(pg::Call& call) : set_(call) {}

  void add(std::string_view check, bool is_ok, std::string_view message) {
    set_.add({pg::text(check), pg::boolean(is_ok), pg::text(message)});
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
  report.add("manager", true,
             "process " + std::to_string(manager->process_id) + " has managed this database for " +
                 seconds(age(manager->since)));
  core::Microseconds silent = age(std::max(manager->swept_at, manager->since));
  report.add("last sweep", silent < kLate + settings::longest_rest(),
             "the manager was last at work " + seconds(silent) + " ago");
}

struct Finding {
  bool is_ok;
  std::string message;
};

Finding look_at_due_jobs() {
  pg::Rows rows = first_due.run_freely({pg::instant(pg::now())});
  std::optional<TimestampTz> run_at = rows.int8_or_null(0, 0);
  if (!run_at) return {.is_ok = true, .message = "no job is due and still delayed"};
  return {.is_ok = age(*run_at) < kLate,
          .message = "a job is due for " + seconds(age(*run_at)) + " and still delayed"};
}

Finding look_at_leases() {
  pg::Rows rows = expired_leases.run_freely({pg::instant(pg::now())});
  std::optional<TimestampTz> expires_at = rows.int8_or_null(0, 1);
  if (!expires_at) return {.is_ok = true, .message = "no lease has expired"};
  return {.is_ok = age(*expires_at) < settings::grace() + settings::longest_rest() + kLate,
          .message = std::to_string(rows.int8(0, 0)) + " leases have expired, the first " +
                     seconds(age(*expires_at)) + " ago, and are not swept yet"};
}

Finding look_at_schedules() {
  pg::Rows rows = schedules_in_all.run_freely({});
  std::string count = std::to_string(rows.int8(0, 0)) + " schedules";
  std::int64_t stopped = rows.int8(0, 1);
  std::optional<TimestampTz> due = rows.int8_or_null(0, 4);
  if (rows.int8(0, 0) > 0 && !command::is_home())
    return {.is_ok = false,
            .message = count + " rest, since they came here by a restored dump or a clone: "
                               "jobq.adopt() lets them run here"};
  if (stopped > 0)
    return {.is_ok = false,
            .message = std::to_string(stopped) + " of " + count + " stopped, \"" +
                       std::string(rows.text(0, 2)) +
                       "\" because: " + std::string(rows.text(0, 3))};
  if (due && *due < pg::now() && age(*due) >= kLate)
    return {.is_ok = false, .message = "a schedule is due for " + seconds(age(*due))};
  return {.is_ok = true, .message = count + ", none stopped, none late"};
}

// Why SQL jobs that are ready wait, if there is a reason.
std::optional<std::string> why_sql_jobs_wait(Oid role, std::int64_t busy) {
  if (!command::is_home())
    return "they came here by a restored dump or a clone: jobq.adopt() lets them run here";
  if (busy >= settings::sql_workers)
    return "all " + std::to_string(settings::sql_workers) +
           " executors (jobq.sql_workers) are taken";
  if (free_workers() == 0) return "no background worker slot is free: raise max_worker_processes";
  return command::why_full(role);
}

Finding look_at_sql_jobs() {
  const command::Waiting waiting = command::look_at_waiting();
  const std::vector<queue::Seat> seats = queue::seats_of(pg::my_database());
  auto busy = std::count_if(seats.begin(), seats.end(), [](const queue::Seat& seat) {
    return seat.stage == queue::Stage::busy;
  });
  std::string message =
      std::to_string(busy) + " SQL jobs run, " + std::to_string(waiting.count) + " are ready";
  if (!waiting.due_at || age(*waiting.due_at) < kLate) return {.is_ok = true, .message = message};
  std::optional<std::string> why = why_sql_jobs_wait(waiting.role, busy);
  return {.is_ok = !why, .message = message + (why ? " and wait: " + *why : "")};
}

// A locked table is a finding, not a reason to hang: whoever asks is in a hurry.
void report_table(Report& report, std::string_view check, Finding (*look)()) {
  Finding finding{};
  std::optional<pg::Error> error = pg::in_vain([&] {
    pg::set_for_transaction("lock_timeout", "1s");
    finding = look();
  });
  if (error) finding = {.is_ok = false, .message = std::string("cannot look: ") + error->message()};
  report.add(check, finding.is_ok, finding.message);
}

void report_snapshots(Report& report) {
  pg::Rows rows = oldest_snapshot.run_freely({});
  if (rows.empty()) return report.add("oldest snapshot", true, "nobody else holds a snapshot");
  std::optional<TimestampTz> since = rows.int8_or_null(0, 4);
  std::int32_t transactions = rows.int4(0, 3);
  report.add("oldest snapshot", since ? age(*since) < kLong : transactions < kManyTransactions,
             "process " + std::to_string(rows.int4(0, 0)) + " (" + std::string(rows.text(0, 1)) +
                 ", " + std::string(rows.text(0, 2)) + ") holds a snapshot " +
                 std::to_string(transactions) + " transactions old" +
                 (since ? ", in a transaction of " + seconds(age(*since)) : ""));
}

void report_prepared(Report& report) {
  pg::Rows rows = prepared_transactions.run_freely({});
  if (rows.empty())
    return report.add("prepared transactions", true, "there is no prepared transaction");
  core::Microseconds oldest = age(rows.int8(0, 1));
  report.add("prepared transactions", oldest < kLong,
             std::to_string(rows.int8(0, 0)) + " prepared transactions, the oldest, \"" +
                 std::string(rows.text(0, 2)) + "\", for " + seconds(oldest));
}

void report_lanes(Report& report) {
  queue::LaneReport lanes = queue::report_on_lanes();
  if (lanes.found_too_high > 0)
    report.add("lanes", false,
               "claims would have missed jobs " + std::to_string(lanes.found_too_high) +
                   " times; they were found in time");
  else
    report.add("lanes", lanes.busy < lanes.places || lanes.places == 0,
               std::to_string(lanes.busy) + " of " + std::to_string(lanes.places) +
                   " lanes (jobq.max_lanes) are in use");
  report.add("groups", lanes.crowded == 0 || lanes.group_places == 0,
             std::to_string(lanes.groups) + " of " + std::to_string(lanes.group_places) +
                 " groups (jobq.max_groups) have ready jobs" +
                 (lanes.crowded == 0 ? "" : "; others find no place, and queue behind all"));
}

void report_workers(Report& report) {
  std::int64_t free = free_workers();
  report.add("worker slots", free > 0,
             std::to_string(free) + " of " + std::to_string(pg::most_workers()) +
                 " background worker slots (max_worker_processes) are free");
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
  if (is_fit) {
    report_table(report, "due jobs", look_at_due_jobs);
    report_table(report, "expired leases", look_at_leases);
    report_table(report, "schedules", look_at_schedules);
    report_table(report, "sql jobs", look_at_sql_jobs);
  }
  report_snapshots(report);
  report_prepared(report);
  report_workers(report);
  report_lanes(report);
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
