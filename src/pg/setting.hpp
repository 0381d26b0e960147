// Settings (GUCs). Texts are literals: the server keeps the pointers.
#pragma once

#include "pg/postgres.hpp"

namespace jobq::pg {

struct Setting {
  const char* name;
  const char* sentence;
  GucContext context;
  int flags = 0;
};

void define_switch(const Setting& setting, bool* variable, bool default_value);
void define_choice(const Setting& setting, int* variable, int default_value,
                   const config_enum_entry* choices);

struct Bounds {
  int default_value;
  int least;
  int most;
};
void define_number(const Setting& setting, int* variable, Bounds bounds);

// No other setting may be called jobq.something from here on.
void reserve_prefix();

} // namespace jobq::pg
