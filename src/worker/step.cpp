#include "worker/step.hpp"

#include <utility>

#include "pg/statement.hpp"

namespace jobq::worker {

namespace {

// Whether the session has the server's value, and what that is for a new one.
constinit pg::Statement read_only_of_server(
    "SELECT source OPERATOR(pg_catalog.=) ANY (ARRAY['default', 'configuration file',"
    " 'command line']), reset_val OPERATOR(pg_catalog.=) 'on' FROM pg_catalog.pg_settings"
    " WHERE name OPERATOR(pg_catalog.=) 'default_transaction_read_only'");

} // namespace

bool is_server_read_only() {
  if (!pg::is_read_only()) return false;
  pg::Rows row = read_only_of_server.run_freely({});
  return row.boolean(0, 0) && row.boolean(0, 1);
}

// The settings of a database are for its clients.
void fix_settings() {
  constexpr std::pair<const char*, const char*> kFixed[] = {
      {"search_path", "pg_catalog, pg_temp"},
      {"default_transaction_isolation", "read committed"},
      {"default_transaction_deferrable", "off"},
      {"synchronous_commit", "local"},
      {"lock_timeout", "100ms"},
      {"work_mem", "4MB"},
      {"temp_file_limit", "-1"},
      {"statement_timeout", "0"},
      {"idle_in_transaction_session_timeout", "0"},
      {"idle_session_timeout", "0"},
      {"transaction_timeout", "0"},
      {"row_security", "on"},
      {"session_replication_role", "origin"}};
  for (auto [name, value] : kFixed) pg::fix_setting(name, value);
  std::optional<pg::Error> error = pg::in_turn("looking at the settings", [] {
    if (!read_only_of_server.run_freely({}).boolean(0, 0))
      pg::fix_setting("default_transaction_read_only", "off");
  });
  if (error) throw pg::Error(*error);
}

} // namespace jobq::worker
