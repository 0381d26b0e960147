// What the server opened for us it closes itself when the transaction aborts, and it must not be
// asked to before: it may hold locks from where the error struck. So what holds such things closes
// them only on the orderly way out.
#pragma once

#include <exception>

namespace jobq::pg {

class OrderlyExit {
 public:
  bool holds() const { return std::uncaught_exceptions() == exceptions_; }

 private:
  int exceptions_ = std::uncaught_exceptions();
};

} // namespace jobq::pg
