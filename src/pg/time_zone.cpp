#include "pg/time_zone.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "pg/error.hpp"

extern "C" {
#include "datatype/timestamp.h"
#include "pgtime.h"
}

namespace jobq::pg {

namespace {

// From 1970, where the server's time zones begin to count, to 2000.
constexpr core::Seconds kEpoch =
    core::Seconds{POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE} * core::kSecondsOfDay;

// Where the rules do not reach, the zone is as good as UTC.
core::Stretch stretch_at(const pg_tz* zone, core::Seconds instant) {
  const pg_time_t time = instant + kEpoch;
  long before = 0;
  long after = 0;
  int is_dst_before = 0;
  int is_dst_after = 0;
  pg_time_t boundary = 0;
  int found =
      pg_next_dst_boundary(&time, &before, &is_dst_before, &boundary, &after, &is_dst_after, zone);
  if (found < 0) return {.offset = 0, .until = core::kNever};
  return {.offset = before, .until = found > 0 ? boundary - kEpoch : core::kNever};
}

// The server spells a zone as its file is called, and a POSIX string in capitals; that one has an
// offset, so a digit. These are the zones that look like one.
constexpr std::string_view kLikePosix[] = {"CST6CDT", "EST5EDT", "GMT+0",  "GMT-0",
                                           "GMT0",    "MST7MDT", "PST8PDT"};

bool is_posix(std::string_view spelling) {
  auto has = [spelling](char first, char last) {
    return std::any_of(spelling.begin(), spelling.end(),
                       [=](char c) { return c >= first && c <= last; });
  };
  return has('0', '9') && !has('a', 'z') &&
         std::find(std::begin(kLikePosix), std::end(kLikePosix), spelling) == std::end(kLikePosix);
}

} // namespace

// Not by pg_timezone_names: that reads all zones, and raises if a single one cannot be read.
std::optional<std::string> spelling_of_time_zone(const std::string& name) {
  if (name.empty()) return std::nullopt;
  pg_tz* zone = guarded<pg_tzset>(name.c_str());
  if (zone == nullptr || !guarded<pg_tz_acceptable>(zone)) return std::nullopt;
  std::string spelling = guarded<pg_get_timezone_name>(zone);
  bool is_other = ::pg_strcasecmp(spelling.c_str(), name.c_str()) != 0; // such as ":UTC"
  return is_other || is_posix(spelling) ? std::nullopt : std::optional(spelling);
}

// The server keeps what it has read of a zone for the process's life.
std::optional<core::Zone> find_time_zone(const std::string& name) {
  const pg_tz* zone = guarded<pg_tzset>(name.c_str());
  if (zone == nullptr) return std::nullopt;
  return [zone](core::Seconds instant) { return stretch_at(zone, instant); };
}

} // namespace jobq::pg
