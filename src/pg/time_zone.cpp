#include "pg/time_zone.hpp"

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

} // namespace

// The server keeps what it has read of a zone for the process's life.
std::optional<core::Zone> find_time_zone(const std::string& name) {
  const pg_tz* zone = guarded<pg_tzset>(name.c_str());
  if (zone == nullptr) return std::nullopt;
  return [zone](core::Seconds instant) { return stretch_at(zone, instant); };
}

} // namespace jobq::pg
