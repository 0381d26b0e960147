// The launcher: one process a server, which keeps a manager in each database that has the
// extension.
#pragma once

namespace jobq::worker {

// To be called once, by _PG_init while the server preloads its libraries. During pg_upgrade there
// is no launcher.
void register_launcher();

} // namespace jobq::worker
