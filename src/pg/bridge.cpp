#include "pg/bridge.hpp"

#include <cstring>

namespace jobq::pg {

void Remains::keep(const char* text) { std::strncpy(message, text, sizeof message - 1); }

void Remains::raise() const {
  if (data != nullptr) ReThrowError(data);
  if (out_of_memory) ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
  ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg_internal("%s", message)));
  pg_unreachable();
}

} // namespace jobq::pg
