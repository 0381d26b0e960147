// The life of a mark: writers and one reader of a line, whose steps unit tests and a fuzzer pick.
#pragma once

#include "core/mark.hpp"
#include "unit/pick.hpp"

#include <array>
#include <set>
#include <utility>

namespace jobq::core {

// How the reader and the writers go about it; all but the first are wrong.
enum class MarkRule { right, begins_after_snapshot, sets_the_mark, writer_lowers_first };

// Writers, each of which makes its row visible and then lowers the mark, and one reader: begin,
// snapshot, look and take what is due, end. All interleave at random. The mark may be early at any
// time, but never late once the writer of a row is through.
class MarkModel {
 public:
  MarkModel(Pick pick, MarkRule rule) : pick_(std::move(pick)), rule_(rule) {}

  void step() {
    if (pick_(0, 2) == 0)
      read();
    else
      write(writers_[static_cast<std::size_t>(pick_(0, 3))]);
  }

  // Some row that is there and told of lies before the mark, and nobody is about to see it.
  bool is_late() const {
    for (const Row& row : told_) {
      if (!visible_.contains(row) || covered_.contains(row)) continue;
      return row.first < mark_.instant;
    }
    return false;
  }

 private:
  using Row = std::pair<Microseconds, int>; // two may have one instant
  struct Writer {
    int stage = 0;
    Row row;
  };

  void write(Writer& writer) {
    switch (writer.stage++) {
    case 0:
      writer.row = {now_ + pick_(1, 50), rows_++};
      if (rule_ == MarkRule::writer_lowers_first) mark_.lower(writer.row.first);
      return;
    case 1:
      visible_.insert(writer.row);
      return;
    default:
      if (rule_ != MarkRule::writer_lowers_first) mark_.lower(writer.row.first);
      if (visible_.contains(writer.row)) told_.insert(writer.row);
      writer.stage = 0;
    }
  }

  void read() {
    switch (stage_++) {
    case 0:
      now_ += pick_(0, 10);
      if (rule_ != MarkRule::begins_after_snapshot) begin();
      return;
    case 1:
      seen_ = visible_;
      return;
    case 2:
      if (rule_ == MarkRule::begins_after_snapshot) begin();
      take_due();
      return;
    default:
      end();
      stage_ = 0;
    }
  }

  void begin() {
    // The rows that the reader has yet to see are its own care from here on.
    covered_ = told_;
    mark_.begin_reading();
  }

  void take_due() {
    for (const Row& row : seen_) {
      if (row.first > now_) continue;
      visible_.erase(row);
      told_.erase(row);
      covered_.erase(row);
    }
    std::erase_if(seen_, [this](const Row& row) { return row.first <= now_; });
  }

  void end() {
    Microseconds left = seen_.empty() ? kForever : seen_.begin()->first;
    if (rule_ == MarkRule::sets_the_mark)
      mark_.instant = left;
    else
      mark_.end_reading(left);
    covered_.clear();
  }

  Pick pick_;
  MarkRule rule_;
  Mark mark_;
  Microseconds now_ = 1;
  int stage_ = 0;
  std::array<Writer, 4> writers_;
  int rows_ = 0;
  std::set<Row> visible_; // rows that a snapshot shows
  std::set<Row> told_;    // rows whose writers are through
  std::set<Row> covered_; // rows told of before the reading that is under way
  std::set<Row> seen_;
};

} // namespace jobq::core
