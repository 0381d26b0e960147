// The words of a text, apart by blanks, tabs and line breaks; letters in any case.
#pragma once

#include <cstddef>
#include <string_view>

namespace jobq::core {

inline bool is_blank(char character) {
  return character == ' ' || (character >= '\t' && character <= '\r');
}

inline bool is_digit(char character) { return character >= '0' && character <= '9'; }

inline char lower(char character) {
  return character >= 'A' && character <= 'Z' ? static_cast<char>(character - 'A' + 'a')
                                              : character;
}

inline bool is_letter(char character) { return lower(character) >= 'a' && lower(character) <= 'z'; }

// `word` in lower case.
inline bool is_word(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (lower(text[i]) != word[i]) return false;
  return true;
}

// Takes that character off the front, if it is there.
inline bool take(std::string_view& rest, char character) {
  if (!rest.starts_with(character)) return false;
  rest.remove_prefix(1);
  return true;
}

// Takes the longest run of such characters off the front.
template <typename Is>
std::string_view take_while(std::string_view& text, Is is) {
  std::size_t length = 0;
  while (length < text.size() && is(text[length])) ++length;
  std::string_view run = text.substr(0, length);
  text.remove_prefix(length);
  return run;
}

// Takes the next word off the front, with the blanks before it; empty if there is none.
inline std::string_view take_word(std::string_view& text) {
  take_while(text, is_blank);
  return take_while(text, [](char character) { return !is_blank(character); });
}

} // namespace jobq::core
