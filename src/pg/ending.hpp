// What a transaction has to tell others is told when its fate is known: at its commit when its
// rows can be seen, at its abort when what it had deleted is back.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "pg/postgres.hpp"

namespace jobq::pg {

// Called at the end of each transaction, and of each subtransaction with its level; they raise
// nothing. What a kept level noted is from then on its parent's.
struct Endings {
  void (*committed)();
  void (*aborted)();
  void (*level_kept)(int level);
  void (*level_lost)(int level);
};

// To be called by _PG_init.
void watch_endings(const Endings& endings);

// Notes of the transaction at hand, each with the level of the (sub)transaction that it stands and
// falls with. Never at namespace scope by itself: see log.cpp.
template <typename Note>
class Notes {
 public:
  // The note of the present level for which matches(note) holds, or a new one.
  template <typename Matches>
  Note& find_or_add(Matches matches, Note fresh) {
    int level = GetCurrentTransactionNestLevel();
    for (Entry& entry : entries_)
      if (entry.level == level && matches(entry.note)) return entry.note;
    return entries_.emplace_back(Entry{level, std::move(fresh)}).note;
  }
  void add(Note note) { entries_.push_back({GetCurrentTransactionNestLevel(), std::move(note)}); }

  template <typename Tell>
  void tell_all(Tell tell) {
    for (const Entry& entry : entries_) tell(entry.note);
    entries_.clear();
  }
  // Of a level that is lost, and those within it.
  template <typename Tell>
  void tell_lost(int level, Tell tell) {
    auto lost = [level](const Entry& entry) { return entry.level >= level; };
    for (const Entry& entry : entries_)
      if (lost(entry)) tell(entry.note);
    std::erase_if(entries_, lost);
  }
  void keep(int level) {
    for (Entry& entry : entries_) entry.level = std::min(entry.level, level - 1);
  }
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    int level;
    Note note;
  };
  std::vector<Entry> entries_;
};

} // namespace jobq::pg
