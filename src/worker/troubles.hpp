// A step that fails again and again: said once, and tried less and less often.
#pragma once

#include <string>

#include "core/duration.hpp"
#include "pg/error.hpp"

namespace jobq::worker {

class Troubles {
 public:
  // A step has failed: says so in the log, `what` first, unless the same has been said within the
  // hour and nothing has succeeded since, or the process is about to leave. Returns how long to
  // wait before the next try: a second, and more with each failure in a row. A table that is locked
  // may be free at any moment: always a second.
  core::Microseconds meet(const pg::Error& error, const std::string& what);

  void end();

 private:
  core::Microseconds wait_after(const pg::Error& error);
  bool is_news(const pg::Error& error);

  int failures_ = 0;
  int said_ = 0; // the SQLSTATE
  core::Microseconds said_at_ = 0;
};

} // namespace jobq::worker
