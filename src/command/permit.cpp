#include "command/permit.hpp"

#include "pg/error.hpp"
#include "pg/session.hpp"
#include "pg/statement.hpp"
#include "settings.hpp"

namespace jobq::command {

namespace {

constinit pg::Statement role_row(
    "SELECT a.rolname::pg_catalog.text, a.rolsuper, a.rolcanlogin, a.rolconnlimit::integer,"
    " pg_catalog.has_database_privilege(a.oid, $2, 'CONNECT') FROM pg_catalog.pg_roles AS a"
    " WHERE a.oid OPERATOR(pg_catalog.=) $1");

// Background processes are held to the limits, but do not count for them; ours are counted here.
constinit pg::Statement limits(
    "SELECT a.rolconnlimit::integer, d.datconnlimit::integer,"
    " (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity AS s"
    " WHERE s.usesysid OPERATOR(pg_catalog.=) a.oid AND s.backend_type OPERATOR(pg_catalog.=)"
    " ANY (ARRAY['client backend', 'jobq executor'])),"
    " (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity AS s"
    " WHERE s.datid OPERATOR(pg_catalog.=) d.oid"
    " AND s.backend_type OPERATOR(pg_catalog.=) 'client backend')"
    " FROM pg_catalog.pg_roles AS a, pg_catalog.pg_database AS d"
    " WHERE a.oid OPERATOR(pg_catalog.=) $1 AND d.oid OPERATOR(pg_catalog.=) $2"
    " AND NOT a.rolsuper");

constinit pg::Statement role_face(
    "SELECT pg_catalog.concat_ws(' ', a.rolname, a.rolsuper, a.rolcanlogin, (SELECT"
    " pg_catalog.string_agg(s.setconfig::pg_catalog.text, ' ' ORDER BY s.setdatabase, s.setrole)"
    " FROM pg_catalog.pg_db_role_setting AS s"
    " WHERE s.setdatabase OPERATOR(pg_catalog.=) ANY (ARRAY[$2, 0::pg_catalog.oid])"
    " AND s.setrole OPERATOR(pg_catalog.=) ANY (ARRAY[$1, 0::pg_catalog.oid])))"
    " FROM pg_catalog.pg_roles AS a WHERE a.oid OPERATOR(pg_catalog.=) $1");

// Nobody may connect under a limit of 0, though a background process could.
std::optional<Refusal> refusal_by(const pg::Rows& row) {
  const std::string role = "role \"" + std::string(row.text(0, 0)) + "\"";
  const bool is_superuser = row.boolean(0, 1);
  if (!row.boolean(0, 2))
    return Refusal{.reason = role + " is not permitted to log in",
                   .hint = "Give it LOGIN, or use a role that has it."};
  if (is_superuser && !settings::superuser_sql)
    return Refusal{.reason = role + " is a superuser, and jobq.superuser_sql is off",
                   .hint = "Use a role that has just the rights that the command needs."};
  if (!row.boolean(0, 4))
    return Refusal{.reason = role + " may not connect to this database",
                   .hint = "Grant it CONNECT on the database."};
  if (row.int4(0, 3) == 0 && !is_superuser)
    return Refusal{.reason = role + " has a connection limit of 0", .hint = "Raise the limit."};
  return std::nullopt;
}

} // namespace

std::optional<Refusal> refusal_of(Oid role, std::string_view name) {
  pg::Rows row = role_row.run_freely({pg::oid(role), pg::oid(pg::my_database())});
  if (!row.empty()) return refusal_by(row);
  return Refusal{.reason = "role \"" + std::string(name) + "\" does not exist",
                 .hint = "Use a role that does."};
}

void require_permit(Oid role, std::string_view name) {
  std::optional<Refusal> refusal = refusal_of(role, name);
  if (!refusal) return;
  pg::raise({.sqlstate = pg::SqlState::insufficient_privilege,
             .message = "cannot run SQL jobs: " + refusal->reason,
             .hint = refusal->hint});
}

std::optional<std::string> why_full(Oid role) {
  pg::Rows row = limits.run_freely({pg::oid(role), pg::oid(pg::my_database())});
  if (row.empty()) return std::nullopt;
  const std::int32_t of_role = row.int4(0, 0);
  const std::int32_t of_database = row.int4(0, 1);
  if (of_role > 0 && row.int8(0, 2) >= of_role)
    return "its role has as many connections as its limit allows";
  if (of_database >= 0 && row.int8(0, 3) > of_database)
    return "the database has as many connections as its limit allows";
  return std::nullopt;
}

std::string face_of(Oid role) {
  pg::Rows row = role_face.run_freely({pg::oid(role), pg::oid(pg::my_database())});
  return row.empty() ? "" : std::string(row.text(0, 0));
}

} // namespace jobq::command
