// NOTIFY, as the command does it: told to those who LISTEN when the transaction has committed.
#pragma once

#include <string>

namespace jobq::pg {

void notify(const char* channel, const std::string& payload);

} // namespace jobq::pg
