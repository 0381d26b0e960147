#include "pg/log.hpp"

#include "pg/ending.hpp"
#include "pg/error.hpp"

namespace jobq::pg {

namespace {

Notes<std::string>& lines() {
  static auto* lines = new Notes<std::string>;
  return *lines;
}

void write(const char* line) { ereport(LOG_SERVER_ONLY, errmsg_internal("%s", line)); }

// Having written a line the server looks for cancellations: this one is not to be met there.
void write_without_interrupts(const char* line) {
  InterruptHoldoffCount = InterruptHoldoffCount + 1; // HOLD_INTERRUPTS, as C++20 has it
  write(line);
  InterruptHoldoffCount = InterruptHoldoffCount - 1;
}

constexpr Endings kEndings = {
    .committed = [] { lines().tell_all([](const std::string& line) { write(line.c_str()); }); },
    .aborted = [] { lines().clear(); },
    .level_kept = [](int level) { lines().keep(level); },
    .level_lost = [](int level) { lines().tell_lost(level, [](const std::string&) {}); }};

} // namespace

void watch_log() { watch_endings(kEndings); }

void log_at_commit(std::string line) { lines().add(std::move(line)); }

void log_now(const std::string& line) { guarded<write_without_interrupts>(line.c_str()); }

} // namespace jobq::pg
