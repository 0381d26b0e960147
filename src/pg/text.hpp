// Text in the database's encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace jobq::pg {

// The longest prefix of at most so many bytes that ends at a character's border.
std::string_view clip(std::string_view text, std::size_t bytes);

// Another number for other bytes, but for rare chance; the same in all processes of a server.
std::uint64_t hash_of(std::string_view text);

// The text, if it is valid; else with a question mark in place of each byte that is not ASCII.
std::string made_valid(std::string text);

// As a literal of SQL.
std::string quoted_literal(std::string_view text);

// application_name:pid, clipped so that it is at most so many bytes.
std::string session_label(std::size_t bytes);

} // namespace jobq::pg
