#include "pg/log.hpp"

#include <vector>

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

struct Entry {
  int level; // of the (sub)transaction that it stands and falls with
  std::string line;
};

std::vector<Entry>& entries() {
  static auto* entries = new std::vector<Entry>;
  return *entries;
}

void at_transaction_event(XactEvent event, void*) {
  if (event == XACT_EVENT_COMMIT)
    for (const Entry& entry : entries())
      ereport(LOG_SERVER_ONLY, errmsg_internal("%s", entry.line.c_str()));
  if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT) entries().clear();
}

void at_subtransaction_event(SubXactEvent event, SubTransactionId, SubTransactionId, void*) {
  int level = GetCurrentTransactionNestLevel();
  if (event == SUBXACT_EVENT_ABORT_SUB)
    std::erase_if(entries(), [level](const Entry& entry) { return entry.level >= level; });
  if (event == SUBXACT_EVENT_COMMIT_SUB)
    for (Entry& entry : entries())
      if (entry.level == level) entry.level = level - 1;
}

} // namespace

void watch_log() {
  RegisterXactCallback(at_transaction_event, nullptr);
  RegisterSubXactCallback(at_subtransaction_event, nullptr);
}

void log_at_commit(std::string line) {
  entries().push_back({.level = GetCurrentTransactionNestLevel(), .line = std::move(line)});
}

} // namespace jobq::pg
