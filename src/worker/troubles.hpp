// A step that fails again and again: said once, and tried less and less often.
#pragma once

#include <string>

#include "core/duration.hpp"
#include "pg/error.hpp"

namespace jobq::worker {

class Troubles {
 public:
  // How long to wait before the next try: a second, and more with each failure in a row. A table
  // that is locked may be free at any moment: always a second.
  core::Microseconds wait_after(const pg::Error& error);

  // False: the same has been said within the hour and nothing has succeeded since.
  bool is_news(const pg::Error& error);

  void end();

 private:
  int failures_ = 0;
  int said_ = 0; // the SQLSTATE
  core::Microseconds said_at_ = 0;
};

// Message and SQLSTATE.
std::string describe(const pg::Error& error);

} // namespace jobq::worker
