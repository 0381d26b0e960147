#include "pg/insertion.hpp"

#include <string>

#include "pg/plan.hpp"
#include "pg/planner.hpp"

namespace jobq::pg {

namespace {

// before1after, before2after, ...
std::string numbered(const char* before, const char* after, std::size_t count) {
  std::string list;
  for (std::size_t i = 1; i <= count; ++i)
    list += (i == 1 ? "" : ", ") + std::string(before) + std::to_string(i) + after;
  return list;
}

std::string into(const char* table, const char* columns) {
  return std::string("INSERT INTO ") + table + " (" + columns + ")";
}

} // namespace

void Insertion::run(std::span<const Value> cells, std::size_t width) {
  if (cells.empty()) return;
  const IndexWalksOnly walks;
  if (cells.size() == width)
    run_one(cells);
  else
    run_many(cells, width);
}

void Insertion::run_one(std::span<const Value> cells) {
  if (one_ == nullptr) {
    std::string sql =
        into(table_, columns_) + " VALUES (" + numbered("$", "", cells.size()) + ") " + conflict_;
    one_ = make_plan(sql.c_str(), cells);
  }
  run_plan(one_, cells, 0);
}

void Insertion::run_many(std::span<const Value> cells, std::size_t width) {
  std::vector<Value> arrays;
  std::vector<Value> column;
  for (std::size_t i = 0; i < width; ++i) {
    column.clear();
    for (std::size_t cell = i; cell < cells.size(); cell += width) column.push_back(cells[cell]);
    arrays.push_back(array_of(cells[i].type, column));
  }
  if (many_ == nullptr) {
    std::string sql = into(table_, columns_) + " SELECT * FROM ROWS FROM (" +
                      numbered("pg_catalog.unnest($", ")", width) + ") " + conflict_;
    many_ = make_plan(sql.c_str(), arrays);
  }
  run_plan(many_, arrays, 0);
}

} // namespace jobq::pg
