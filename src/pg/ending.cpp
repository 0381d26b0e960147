#include "pg/ending.hpp"

#include <array>

namespace jobq::pg {

namespace {

constexpr std::size_t kMostWatchers = 4;
std::array<Endings, kMostWatchers> watchers;
std::size_t watcher_count = 0;

void at_transaction_event(XactEvent event, void*) {
  for (std::size_t i = 0; i < watcher_count; ++i) {
    if (event == XACT_EVENT_COMMIT) watchers[i].committed();
    if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE) watchers[i].aborted();
  }
}

void at_subtransaction_event(SubXactEvent event, SubTransactionId, SubTransactionId, void*) {
  int level = GetCurrentTransactionNestLevel();
  for (std::size_t i = 0; i < watcher_count; ++i) {
    if (event == SUBXACT_EVENT_COMMIT_SUB) watchers[i].level_kept(level);
    if (event == SUBXACT_EVENT_ABORT_SUB) watchers[i].level_lost(level);
  }
}

} // namespace

void watch_endings(const Endings& endings) {
  if (watcher_count == 0) {
    RegisterXactCallback(at_transaction_event, nullptr);
    RegisterSubXactCallback(at_subtransaction_event, nullptr);
  }
  watchers.at(watcher_count++) = endings;
}

} // namespace jobq::pg
