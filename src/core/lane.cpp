#include "core/lane.hpp"

#include "core/pure.hpp"

namespace jobq::core {

namespace {

// The lowest that was lowered to since the reading; kBeforeAll if the ring has forgotten.
Tag lowest_since(const Lane& lane, std::uint64_t lowerings) {
  if (lane.lowerings - lowerings > Lane::kRing) return kBeforeAll;
  Tag lowest = kNoTag;
  for (std::uint64_t i = lowerings; i != lane.lowerings; ++i)
    lowest = std::min(lowest, lane.lowered_to[i % Lane::kRing]);
  return lowest;
}

} // namespace

Tag give_tag(Lane& lane, Tag* last, Tag stride) {
  Tag base = last != nullptr ? std::max(*last, lane.start) : lane.highest;
  Tag tag = std::min(std::max(lane.vtime, base), kLastTag - stride) + stride;
  (last != nullptr ? *last : lane.overflow) = tag;
  lane.highest = std::max(lane.highest, tag);
  return tag;
}

Reading read(const Lane& lane) {
  return {.cursor = lane.cursor,
          .vtime = lane.vtime,
          .lowerings = lane.lowerings,
          .generation = lane.generation};
}

void lower(Lane& lane, Tag tag) {
  lane.cursor = std::min(lane.cursor, tag);
  lane.highest = std::max(lane.highest, tag);
  lane.lowered_to[lane.lowerings % Lane::kRing] = tag;
  ++lane.lowerings;
}

void raise(Lane& lane, const Reading& reading, const Scan& scan) {
  lane.vtime = std::max(lane.vtime, scan.highest);
  if (reading.generation != lane.generation || !scan.is_current) return;
  Tag bound = std::min({scan.bound(), reading.vtime + 1, lowest_since(lane, reading.lowerings)});
  lane.cursor = std::max(lane.cursor, bound);
}

void appear(Lane& lane, Tag put) {
  if (put <= lane.vtime) lower(lane, put);
}

void set_ends(std::span<Scan> scans, bool is_full) {
  std::size_t to_end = scans.size();
  if (is_full)
    while (to_end > 0 && !scans[to_end - 1].took()) --to_end;
  for (std::size_t i = 0; i < scans.size(); ++i)
    scans[i].is_to_end = is_full ? i + 1 < to_end : true;
}

} // namespace jobq::core
