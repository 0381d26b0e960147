#include "core/due.hpp"

#include <algorithm>
#include <numeric>

#include "core/pure.hpp"

namespace jobq::core {

namespace {

using Instants = std::vector<Microseconds>;

// Those after `after` and not after `last`, in order; of more than `most`, so many and one.
Instants instants_between(const Rule& rule, Microseconds after, Microseconds last,
                          std::size_t most) {
  Instants instants;
  while (after < last && instants.size() <= most) {
    std::optional<Microseconds> next = next_after(rule, after);
    if (!next || *next > last) break;
    instants.push_back(*next);
    after = *next;
  }
  return instants;
}

// The last ones: all of them, or more than kMostCaughtUp. Years of seconds are not walked through.
Instants last_instants(const Rule& rule, Microseconds after, Microseconds last) {
  constexpr std::size_t kFew = kMostCaughtUp;
  constexpr std::size_t kMany = 2 * kFew;
  Instants instants = instants_between(rule, after, last, kMany);
  if (instants.size() <= kMany) return instants;
  Microseconds too_early = after;
  Microseconds too_late = last;
  while (instants.size() > kMany || instants.size() <= kFew) {
    Microseconds middle = std::midpoint(too_early, too_late);
    instants = instants_between(rule, middle, last, kMany);
    (instants.size() > kMany ? too_early : too_late) = middle;
  }
  return instants;
}

// Takes all but the last kMostCaughtUp out.
std::optional<Due::Span> take_long_missed(Instants& late, const Rule& rule,
                                          Microseconds handled_until) {
  if (late.size() <= kMostCaughtUp) return std::nullopt;
  auto recent = late.end() - kMostCaughtUp;
  Due::Span span = {.first = *next_after(rule, handled_until), .last = *(recent - 1)};
  late.erase(late.begin(), recent);
  return span;
}

std::size_t count_caught_up(CatchUp catch_up, std::size_t late) {
  switch (catch_up) {
  case CatchUp::none:
    return 0;
  case CatchUp::once:
    return std::min<std::size_t>(late, 1);
  case CatchUp::all:
    break;
  }
  return late;
}

} // namespace

Due due_instants(const Rule& rule, Microseconds handled_until, const Moment& moment,
                 CatchUp catch_up) {
  Due due;
  Microseconds last_late =
      std::min(moment.now, std::max(moment.undisturbed_since, moment.now - kPunctual) - 1);
  Instants late = last_instants(rule, handled_until, last_late);
  due.long_missed = take_long_missed(late, rule, handled_until);

  auto caught_up = late.end() - static_cast<std::ptrdiff_t>(count_caught_up(catch_up, late.size()));
  due.missed.assign(late.begin(), caught_up);
  due.firing.assign(caught_up, late.end());
  Instants punctual = instants_between(rule, std::max(handled_until, last_late), moment.now,
                                       kPunctual / kSecond + 1);
  due.firing.insert(due.firing.end(), punctual.begin(), punctual.end());

  due.handled_until = !punctual.empty() ? punctual.back()
                      : !late.empty()   ? late.back()
                                        : handled_until;
  due.next = next_after(rule, std::max(handled_until, moment.now));
  return due;
}

} // namespace jobq::core
