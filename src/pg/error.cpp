#include "pg/error.hpp"

namespace jobq::pg {

namespace {

MemoryContext error_home = nullptr;

// Copying an error takes memory, and the error may be that there is none: then this one stands
// in for it.
ErrorData* copy_error(MemoryContext memory) {
  sigjmp_buf jump;
  sigjmp_buf* outer = PG_exception_stack;
  ErrorData* copy = nullptr;
  if (sigsetjmp(jump, 0) == 0) {
    PG_exception_stack = &jump;
    copy = CopyErrorData();
  } else {
    static ErrorData out_of_memory;
    out_of_memory = {};
    out_of_memory.elevel = ERROR;
    out_of_memory.output_to_server = true;
    out_of_memory.output_to_client = true;
    out_of_memory.sqlerrcode = ERRCODE_OUT_OF_MEMORY;
    static char message[] = "out of memory";
    out_of_memory.message = message;
    out_of_memory.assoc_context = memory;
    PG_exception_stack = outer;
    MemoryContextSwitchTo(memory);
    return &out_of_memory;
  }
  PG_exception_stack = outer;
  return copy;
}

struct Texts {
  int sqlstate;
  const char* message;
  const char* detail;
  const char* hint;
};

Texts texts_of(const Complaint& complaint) {
  return {.sqlstate = static_cast<int>(complaint.sqlstate),
          .message = complaint.message.c_str(),
          .detail = complaint.detail.empty() ? nullptr : complaint.detail.c_str(),
          .hint = complaint.hint.empty() ? nullptr : complaint.hint.c_str()};
}

void report(int level, Texts texts) {
  ereport(level, (errcode(texts.sqlstate), errmsg_internal("%s", texts.message),
                  texts.detail != nullptr ? errdetail_internal("%s", texts.detail) : 0,
                  texts.hint != nullptr ? errhint("%s", texts.hint) : 0));
}

} // namespace

ErrorHome::ErrorHome(MemoryContext memory) : outer_(error_home) { error_home = memory; }

ErrorHome::~ErrorHome() { error_home = outer_; }

void Surroundings::throw_caught() const {
  restore();
  MemoryContext home = error_home == nullptr ? memory : error_home;
  MemoryContextSwitchTo(home);
  ErrorData* data = copy_error(home);
  FlushErrorState();
  MemoryContextSwitchTo(memory);
  throw Error(data);
}

void end_session() {
  ereport(FATAL, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not close what a call had open")));
  pg_unreachable();
}

void raise(const Complaint& complaint) {
  guarded<report>(int{ERROR}, texts_of(complaint));
  __builtin_unreachable();
}

void warn(const Complaint& complaint) { guarded<report>(int{WARNING}, texts_of(complaint)); }

} // namespace jobq::pg
