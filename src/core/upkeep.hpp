// What the launcher knows of one database, and when it next starts a manager there.
//
//   wanted ---> starting ---> up ---> wanted (it ended: at once, or later if it ended soon)
//     ^            |           \---> absent (the extension was dropped)
//     |            +--> absent (the extension is not there) --> wanted (somebody asks, or a look
//     round)
//     +------------+ (it did not come up: later)
#pragma once

#include "core/duration.hpp"

namespace jobq::core {

class Upkeep {
 public:
  enum class State { wanted, starting, up, absent };

  State state() const { return state_; }

  // When a manager is to be started; only if wanted.
  Microseconds try_at() const { return try_at_; }         // 0: at once
  Microseconds started_at() const { return started_at_; } // the last time
  bool is_due(Microseconds now) const { return state_ == State::wanted && try_at_ <= now; }

  // Somebody knows that there is something new in the database. While a manager is there or on its
  // way it may have looked before: then, if it found nothing, another one looks again.
  void ask();

  void note_start(Microseconds now);
  void note_up();
  // There is nothing to manage in the database.
  void note_absence();
  // The manager ended because it was asked to, or before anybody heard from it, or of an error.
  void note_leave();
  void note_failure(Microseconds now);

 private:
  State state_ = State::wanted;
  Microseconds try_at_ = 0;
  Microseconds started_at_ = 0;
  int failures_ = 0; // in a row
  bool is_asked_ = false;
};

} // namespace jobq::core
