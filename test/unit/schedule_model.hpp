// A year of schedulers that live by due_instants: their timers wake too early and too late, the
// server goes down, its clock is set, and at times two of them believe that they are the one. What
// becomes of each instant is written down, the instant being the key. A flaw takes a rule out.
#pragma once

#include "core/due.hpp"
#include "unit/pick.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace jobq::core {

class ScheduleModel {
 public:
  enum class Flaw {
    none,
    no_key,          // an instant may be written down twice
    next_from_now,   // what the timer was set for fires when it goes off, and the next is after now
    looks_ahead_only // after a restart nobody asks what came meanwhile
  };

  ScheduleModel(Rule rule, CatchUp catch_up, Flaw flaw, Pick pick)
      : rule_(std::move(rule)), catch_up_(catch_up), flaw_(flaw), pick_(std::move(pick)) {}

  void live(Microseconds from, Microseconds until) {
    from_ = handled_until_ = undisturbed_since_ = now_ = from;
    next_ = next_after(rule_, now_);
    while (handled_until_ < until && next_) {
      sleep();
      befall();
      act();
    }
  }

  int twice() const { return twice_; }
  int early() const { return early_; }
  std::size_t fired() const { return fired_; }

  // Instants of which nothing was written down, up to the last one that was handled.
  int lost() const {
    int lost = 0;
    for (auto instant = next_after(rule_, from_); instant && *instant <= handled_until_;
         instant = next_after(rule_, *instant))
      lost += written_.contains(*instant) || is_long_missed(*instant) ? 0 : 1;
    return lost;
  }

 private:
  static constexpr Microseconds kMinute = 60 * kSecond;

  // The timer is set for the next instant, and is not exact.
  void sleep() {
    Microseconds late = pick_(0, 3) == 0 ? -pick_(0, 5000) : pick_(0, 2 * kSecond);
    now_ = std::max(now_, *next_ + late);
  }

  void befall() {
    switch (pick_(0, 199)) {
    case 0:
      return go_down(pick_(0, 2 * kDay));
    case 1:
      return go_down(pick_(0, 2 * kMinute));
    case 2:
      return set_clock(pick_(0, 8 * kHour));
    case 3:
      return set_clock(-pick_(0, 8 * kHour));
    case 4:
      now_ += pick_(0, 20 * kMinute); // it stood still, and nobody told
      return;
    default:
      return;
    }
  }

  void go_down(Microseconds length) {
    set_clock(length);
    if (flaw_ == Flaw::looks_ahead_only) handled_until_ = std::max(handled_until_, now_);
  }

  void set_clock(Microseconds by) {
    now_ += by;
    if (by > kSecond) undisturbed_since_ = now_;
  }

  Due due() const {
    return due_instants(rule_, handled_until_, {now_, undisturbed_since_}, catch_up_);
  }

  void act() {
    if (flaw_ == Flaw::next_from_now) return act_by_timer();
    std::optional<Due> of_another; // that has read the same, and writes last
    if (pick_(0, 9) == 0) {
      of_another = due();
      now_ += pick_(0, 30 * kSecond);
    }
    Due mine = due();
    write(mine);
    if (of_another) write(*of_another);
    next_ = mine.next;
  }

  void act_by_timer() {
    write(*next_, true);
    handled_until_ = std::max(handled_until_, *next_);
    next_ = next_after(rule_, now_);
  }

  void write(const Due& due) {
    if (due.long_missed) long_missed_.push_back(*due.long_missed);
    for (Microseconds instant : due.missed) write(instant, false);
    for (Microseconds instant : due.firing) write(instant, true);
    handled_until_ = std::max(handled_until_, due.handled_until);
  }

  void write(Microseconds instant, bool fires) {
    early_ += instant > now_ && flaw_ == Flaw::none ? 1 : 0;
    bool is_new = written_.insert({instant, fires}).second;
    bool counts = is_new || flaw_ == Flaw::no_key || flaw_ == Flaw::next_from_now;
    twice_ += (counts && !is_new) || is_long_missed(instant) ? 1 : 0;
    fired_ += counts && fires ? 1 : 0;
  }

  bool is_long_missed(Microseconds instant) const {
    return std::ranges::any_of(long_missed_, [instant](const Due::Span& span) {
      return span.first <= instant && instant <= span.last;
    });
  }

  Rule rule_;
  CatchUp catch_up_;
  Flaw flaw_;
  Pick pick_;

  Microseconds from_ = 0;
  Microseconds now_ = 0;
  Microseconds undisturbed_since_ = 0;
  Microseconds handled_until_ = 0;
  std::optional<Microseconds> next_;

  std::map<Microseconds, bool> written_; // whether it fired
  std::vector<Due::Span> long_missed_;
  int twice_ = 0;
  int early_ = 0;
  std::size_t fired_ = 0;
};

} // namespace jobq::core
