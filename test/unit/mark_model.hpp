// The life of a mark: writers and one reader of a line, whose steps unit tests and a fuzzer pick.
#pragma once

#include "core/mark.hpp"
#include "unit/pick.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace jobq::core {

// How the reader and the writers go about it; all but the first are wrong.
enum class MarkRule {
  right,
  begins_after_snapshot,
  sets_the_mark,         // what was lowered during the reading is lost
  sets_low,              // the same of the low mark alone
  writer_lowers_first,   // before its row can be seen
  lowers_instant_alone,  // never the low mark
  looks_at_the_same,     // a mark of the row's very instant is early enough
  low_is_what_is_left,   // rows that cannot be taken now do not count
  low_passes_deletions,  // rows that somebody deletes do not count
  error_raises_low,      // a reading that came to nothing counts
  error_forgets_instant, // a reading that came to nothing leaves nothing to do
  copy_lowers_nothing,
};

// The line is a set of places. Writers put rows into it, some of them by COPY: the row can be seen,
// then its writer looks whether the mark is early enough, then lowers it. Deleters take one, which
// can be seen until they end, and end by keeping it or not. One reader: begin, snapshot, look from
// the low mark on and take at most a few of what is due, end; or it fails, and takes nothing.
// All interleave at random.
class MarkModel {
 public:
  MarkModel(Pick pick, MarkRule rule) : pick_(std::move(pick)), rule_(rule) {}

  void step() {
    switch (pick_(0, 4)) {
    case 0:
    case 1:
      return read();
    case 2:
      return erase(deleters_[static_cast<std::size_t>(pick_(0, 1))]);
    default:
      return write(writers_[static_cast<std::size_t>(pick_(0, 3))]);
    }
  }

  // Some row that is there and told of lies before the mark, and nobody is about to see it; or
  // below the low mark.
  bool is_late() const { return mark_is_late() || low_is_late(); }

  // So that a test of nothing is seen to be one: rows taken, looks that began above the beginning.
  int taken() const { return taken_; }
  int short_looks() const { return short_looks_; }

 private:
  using Rows = std::set<Place>;
  static constexpr std::size_t kMostRows = 20;

  struct Writer {
    int stage = 0;
    Place row;
    bool copies = false;
    bool is_told = false; // by another, who needed no lock to see it
  };
  struct Deleter {
    std::optional<Place> row;
  };

  bool has(MarkRule rule) const { return rule_ == rule; }

  bool mark_is_late() const {
    return std::any_of(told_.begin(), told_.end(), [this](const Place& row) {
      return !covered_.contains(row) && !stuck_.contains(row) && row.instant < mark_.instant;
    });
  }
  // Others than the reader look from there on as well, and at any time.
  bool low_is_late() const { return !told_.empty() && *told_.begin() < mark_.low; }

  // Many rows have one instant, and are not put in the order of their jobs.
  Place new_row() {
    for (;;) {
      Place row = {.instant = now_ + pick_(-5, 20), .job_id = pick_(1, 1000)};
      if (!visible_.contains(row) && !told_.contains(row)) return row;
    }
  }

  void write(Writer& writer) {
    switch (writer.stage++) {
    case 0:
      if (visible_.size() > kMostRows) {
        writer.stage = 0;
        return;
      }
      writer = {.stage = 1, .row = new_row(), .copies = pick_(0, 19) == 0};
      if (has(MarkRule::writer_lowers_first)) lower(writer);
      return;
    case 1:
      visible_.insert(writer.row);
      if (pick_(0, 9) == 0) stuck_.insert(writer.row); // in grace, or its job is not there
      return;
    case 2: { // the look without the lock
      bool is_same = has(MarkRule::looks_at_the_same) && mark_.instant == writer.row.instant;
      writer.is_told = !writer.copies && (mark_.instant < writer.row.instant || is_same);
      if (writer.is_told) tell(writer);
      return;
    }
    default:
      writer.stage = 0;
      if (writer.is_told) return;
      if (!has(MarkRule::writer_lowers_first)) lower(writer);
      tell(writer);
    }
  }

  // It may have been taken meanwhile.
  void tell(const Writer& writer) {
    if (visible_.contains(writer.row)) told_.insert(writer.row);
  }

  void lower(const Writer& writer) {
    if (writer.copies) {
      if (!has(MarkRule::copy_lowers_nothing)) mark_ = {};
      return;
    }
    Place low = mark_.low;
    mark_.lower(writer.row.instant);
    if (has(MarkRule::lowers_instant_alone)) mark_.low = low;
  }

  void erase(Deleter& deleter) {
    if (!deleter.row) {
      if (told_.empty()) return;
      auto row = std::next(told_.begin(), pick_(0, static_cast<std::int64_t>(told_.size()) - 1));
      if (held_.contains(*row) || taking_.contains(*row)) return;
      held_.insert(*row);
      deleter.row = *row;
      return;
    }
    held_.erase(*deleter.row);
    if (pick_(0, 1) == 0) forget(*deleter.row);
    deleter.row.reset();
  }

  void forget(const Place& row) {
    visible_.erase(row);
    told_.erase(row);
    stuck_.erase(row);
    covered_.erase(row);
  }

  void read() {
    switch (stage_++) {
    case 0:
      now_ += pick_(0, 10);
      before_ = mark_;
      if (!has(MarkRule::begins_after_snapshot)) begin();
      return;
    case 1:
      seen_ = visible_;
      held_then_ = held_;
      return;
    case 2:
      if (has(MarkRule::begins_after_snapshot)) begin();
      take_due();
      return;
    default:
      if (pick_(0, 4) == 0)
        fail();
      else
        end();
      taking_.clear();
      covered_.clear();
      stage_ = 0;
    }
  }

  void begin() {
    // The rows that the reader has yet to see are its own care from here on.
    before_ = mark_;
    covered_ = told_;
    mark_.begin_reading();
    if (before_.low != kBeginning) ++short_looks_;
  }

  // Below the low mark it sees nothing, whatever is there.
  void take_due() {
    seen_.erase(seen_.begin(), seen_.lower_bound(before_.low));
    std::int64_t most = pick_(1, 4);
    is_page_full_ = false;
    for (const Place& row : seen_) {
      if (row.instant > now_ || stuck_.contains(row) || held_.contains(row)) continue;
      if (!visible_.contains(row)) continue; // gone since
      taking_.insert(row);
      is_page_full_ = static_cast<std::int64_t>(taking_.size()) == most;
      if (is_page_full_) break;
    }
  }

  Place first_seen() const {
    for (const Place& row : seen_) {
      if (taking_.contains(row)) continue;
      if (has(MarkRule::low_passes_deletions) && held_then_.contains(row)) continue;
      if (has(MarkRule::low_is_what_is_left) && stuck_.contains(row)) continue;
      return row;
    }
    return kEnd;
  }

  // Those that are due and cannot be taken are looked at again after a while.
  Microseconds left() const {
    for (const Place& row : seen_)
      if (!taking_.contains(row) && !stuck_.contains(row)) return row.instant;
    return kForever;
  }

  void end() {
    const Place lowest = first_seen();
    const Microseconds next = is_page_full_ ? lowest.instant : left();
    for (const Place& row : taking_) forget(row);
    taken_ += static_cast<int>(taking_.size());
    if (has(MarkRule::sets_the_mark))
      mark_ = {.instant = next, .low = lowest};
    else
      mark_.end_reading(next, lowest);
    if (has(MarkRule::sets_low)) mark_.low = lowest;
  }

  void fail() {
    if (has(MarkRule::error_raises_low))
      mark_.end_reading(before_.instant, first_seen());
    else if (!has(MarkRule::error_forgets_instant))
      mark_.lower(before_.instant);
  }

  Pick pick_;
  MarkRule rule_;
  Mark mark_;
  Mark before_; // the reading
  Microseconds now_ = 1;
  int stage_ = 0;
  bool is_page_full_ = false;
  int taken_ = 0;
  int short_looks_ = 0;
  std::array<Writer, 4> writers_;
  std::array<Deleter, 2> deleters_;
  Rows visible_; // rows that a snapshot shows
  Rows told_;    // rows whose writers are through
  Rows stuck_;   // rows that no reading can take
  Rows held_;    // rows that somebody is deleting
  Rows covered_; // rows told of before the reading that is under way
  Rows seen_;    // by the reading
  Rows taking_;
  Rows held_then_;
};

} // namespace jobq::core
