#include "worker/command_report.hpp"

#include "pg/text.hpp"
#include "pg/transaction.hpp"
#include "queue/bounds.hpp"

namespace jobq::worker {

namespace {

std::string json_of(const pg::CommandEnd& end, bool with_row) {
  std::string json = "{\"command\": \"" + end.tag + "\", \"rows\": " + std::to_string(end.rows);
  if (with_row && end.first_row) json += ", \"row\": " + *end.first_row;
  if (end.is_cut || (end.first_row && !with_row)) json += ", \"is_cut\": true";
  return json + "}";
}

std::string length_of(core::Microseconds length) {
  if (length % core::kSecond == 0) return std::to_string(length / core::kSecond) + " s";
  return std::to_string(length / 1000) + " ms";
}

// What a stopped command raised is what the stop made of it.
std::string headline_of(const pg::CommandEnd& end, core::Microseconds timeout) {
  switch (end.stop) {
  case pg::Stop::deadline:
    return "57014: canceled after its timeout of " + length_of(timeout);
  case pg::Stop::leaving:
    return "57P01: canceled, since its process was asked to end";
  case pg::Stop::asked:
  case pg::Stop::none:
    break;
  }
  return end.error->sqlstate_text() + ": " + end.error->message();
}

void add_line(std::string& text, const char* label, const char* line) {
  if (line != nullptr) text.append("\n").append(label).append(":  ").append(line);
}

} // namespace

// JSON is laxer than JSONB: what JSONB does not take of it is left out.
pg::Value result_of(const pg::CommandEnd& end) {
  pg::Value result;
  std::optional<pg::Error> error =
      pg::in_subtransaction([&] { result = pg::jsonb(json_of(end, true)); });
  return error ? pg::jsonb(json_of(end, false)) : result;
}

std::string failure_of(const pg::CommandEnd& end, core::Microseconds timeout) {
  const ErrorData* data = end.error->data();
  std::string text = headline_of(end, timeout);
  add_line(text, "DETAIL", data->detail);
  add_line(text, "HINT", data->hint);
  add_line(text, "CONTEXT", data->context);
  return std::string(pg::clip(pg::made_valid(text), queue::kLongestText));
}

} // namespace jobq::worker
