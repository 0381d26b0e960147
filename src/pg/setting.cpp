#include "pg/setting.hpp"

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

void switch_leaf(Setting setting, bool* variable, bool default_value) {
  DefineCustomBoolVariable(setting.name, setting.sentence, nullptr, variable, default_value,
                           setting.context, setting.flags, nullptr, nullptr, nullptr);
}

void choice_leaf(Setting setting, int* variable, int default_value,
                 const config_enum_entry* choices) {
  DefineCustomEnumVariable(setting.name, setting.sentence, nullptr, variable, default_value,
                           choices, setting.context, setting.flags, nullptr, nullptr, nullptr);
}

void number_leaf(Setting setting, int* variable, Bounds bounds) {
  DefineCustomIntVariable(setting.name, setting.sentence, nullptr, variable, bounds.default_value,
                          bounds.least, bounds.most, setting.context, setting.flags, nullptr,
                          nullptr, nullptr);
}

void reserve_leaf() { MarkGUCPrefixReserved("jobq"); }

} // namespace

void define_switch(const Setting& setting, bool* variable, bool default_value) {
  guarded<switch_leaf>(setting, variable, default_value);
}

void define_choice(const Setting& setting, int* variable, int default_value,
                   const config_enum_entry* choices) {
  guarded<choice_leaf>(setting, variable, default_value, choices);
}

void define_number(const Setting& setting, int* variable, Bounds bounds) {
  guarded<number_leaf>(setting, variable, bounds);
}

void reserve_prefix() { guarded<reserve_leaf>(); }

} // namespace jobq::pg
