#include "pg/text.hpp"

#include "pg/postgres.hpp"

extern "C" {
#include "common/hashfn.h"
}

namespace jobq::pg {

std::string_view clip(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  int length = pg_mbcliplen(text.data(), static_cast<int>(text.size()), static_cast<int>(bytes));
  return text.substr(0, static_cast<std::size_t>(length));
}

std::uint64_t hash_of(std::string_view text) {
  return hash_bytes_extended(reinterpret_cast<const unsigned char*>(text.data()),
                             static_cast<int>(text.size()), 0);
}

std::string made_valid(std::string text) {
  if (pg_verifymbstr(text.data(), static_cast<int>(text.size()), true)) return text;
  for (char& byte : text)
    if ((byte & 0x80) != 0) byte = '?';
  return text;
}

std::string quoted_literal(std::string_view text) {
  std::string literal = "'";
  for (char c : text) literal += c == '\'' ? "''" : std::string(1, c);
  return literal + "'";
}

std::string session_label(std::size_t bytes) {
  std::string pid = ":" + std::to_string(MyProcPid);
  std::string_view name = application_name == nullptr ? "" : application_name;
  return std::string(clip(name, bytes - pid.size())) + pid;
}

} // namespace jobq::pg
