// Why a text is no timetable, in the server's style: no capital, no full stop; and what to do about
// it, as a sentence.
#pragma once

#include <string>
#include <string_view>

namespace jobq::core {

struct Mistake {
  std::string message;
  std::string hint;
};

// A part of the text for a message: ` "part"`, its end left out if it is long. Nothing of a text
// that is not all printable ASCII: its bytes may be those of any encoding, cut anywhere.
std::string quoted(std::string_view part);

} // namespace jobq::core
