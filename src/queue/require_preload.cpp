// For the install script: says what is missing before anything is made.
#include "pg/door.hpp"
#include "pg/extension.hpp"

namespace jobq::queue {

JOBQ_DOOR(jobq_require_preload) {
  return pg::bridge(fcinfo, [](FunctionCallInfo) {
    pg::require_preload();
    return Datum{0};
  });
}

} // namespace jobq::queue
