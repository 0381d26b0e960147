// Between the launcher, the managers, and sessions that need a database for themselves: who manages
// which database, who must stay out of it, and what the launcher is asked for. Kept in shared
// memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace jobq::worker {

// To be called once, by _PG_init while the server preloads its libraries.
void request_roster();

// The launcher.

// From now on this process is the launcher. Places of managers that were started but have not
// been heard from are closed: their tickets are worth nothing any more.
void become_launcher();

// The ticket with which a manager may come in; nothing while somebody holds the database, or has
// made, changed or dropped one since the wishes were taken: it may be gone.
std::optional<std::uint64_t> open_place(std::uint32_t database);
void close_place(std::uint32_t database);

enum class Word {
  none,   // it has not come in yet
  here,   // it manages
  absent, // it has left, since there is nothing to manage
  leave,  // it has left, as asked
  failure // it has left, nobody knows why
};
struct PlaceReport {
  std::uint32_t database;
  int process_id; // 0: not there
  Word word;
};
// All places; those that somebody has left are closed by this.
std::vector<PlaceReport> collect_reports();

struct Wishes {
  bool is_look_round = false; // there may be new databases
  bool is_too_many = false;   // others than those listed were asked for as well
  std::vector<std::uint32_t> databases;
};
Wishes take_wishes();
bool has_wishes();

// Asks the manager of a database to leave.
void dismiss(std::uint32_t database);

// A manager.

// False: its ticket is not valid, or the database is held. Then the process is to end.
bool come_in(std::uint32_t database, std::uint64_t ticket);
// The last word is what the launcher hears when the process ends.
void say(Word word);

// Sessions.

// Asks manager and executors of the database to leave, waits until they have, and keeps others out
// until release(). Raises if the session is cancelled meanwhile; then release() is still to be
// called.
void hold(std::uint32_t database);
void release();

void ask_for(std::uint32_t database);
void ask_for_look_round();

// Since the server's start. If it has, the server brings it back within a second when it ends.
bool has_launcher_been_there();
bool is_held(std::uint32_t database);

} // namespace jobq::worker
