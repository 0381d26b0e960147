// The outbound bridge: whatever a room's body throws is raised after its last C++ scope has ended.
#pragma once

#include <exception>
#include <new>

#include "pg/error.hpp"

namespace jobq::pg {

// What is left of a thrown thing when all C++ scopes have ended: plain memory.
struct Remains {
  ErrorData* data = nullptr;
  bool out_of_memory = false;
  char message[256] = "";

  void keep(const char* text);
  [[noreturn]] void raise() const;
};

template <typename Body>
Datum bridged(Body body) {
  Remains remains;
  try {
    const ErrorHome home(CurrentMemoryContext);
    return body();
  } catch (const Error& error) {
    remains.data = error.data();
  } catch (const std::bad_alloc&) {
    remains.out_of_memory = true;
  } catch (const std::exception& exception) {
    remains.keep(exception.what());
  } catch (...) {
    remains.keep("unknown C++ exception");
  }
  remains.raise();
}

} // namespace jobq::pg
