#include "pg/notify.hpp"

#include "pg/error.hpp"

extern "C" {
#include "commands/async.h"
}

namespace jobq::pg {

void notify(const char* channel, const std::string& payload) {
  guarded<Async_Notify>(channel, payload.c_str());
}

} // namespace jobq::pg
