// The bridge between the server's longjmp and C++ unwinding. Inwards: `guarded<f>(...)` calls a
// server function and turns what it raises into pg::Error, whole. Outwards: a door (door.hpp)
// catches everything, lets every C++ scope end, and only then raises again.
//
// Catching is not recovering: the server cleans up its locks, buffers and memory when the
// transaction aborts, so an Error is either rethrown or its subtransaction rolled back.
#pragma once

#include <string>
#include <type_traits>

#include "pg/postgres.hpp"

namespace jobq::pg {

enum class SqlState : int {
  active_transaction = ERRCODE_ACTIVE_SQL_TRANSACTION,
  array_mismatch = ERRCODE_ARRAY_SUBSCRIPT_ERROR,
  duplicate_object = ERRCODE_DUPLICATE_OBJECT,
  insufficient_privilege = ERRCODE_INSUFFICIENT_PRIVILEGE,
  data_corrupted = ERRCODE_DATA_CORRUPTED,
  invalid_value = ERRCODE_INVALID_PARAMETER_VALUE,
  name_too_long = ERRCODE_NAME_TOO_LONG,
  not_ready = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
  null_value = ERRCODE_NULL_VALUE_NOT_ALLOWED,
  object_in_use = ERRCODE_OBJECT_IN_USE,
  out_of_range = ERRCODE_DATETIME_VALUE_OUT_OF_RANGE,
  serialization_failure = ERRCODE_T_R_SERIALIZATION_FAILURE,
  undefined_object = ERRCODE_UNDEFINED_OBJECT,
  syntax_error = ERRCODE_SYNTAX_ERROR,
  unique_violation = ERRCODE_UNIQUE_VIOLATION,
  warning = ERRCODE_WARNING,
  unsupported = ERRCODE_FEATURE_NOT_SUPPORTED,
};

// Where errors are kept on their way out: the memory of whoever called the innermost door, which
// outlives every C++ scope in between.
class ErrorHome {
 public:
  explicit ErrorHome(MemoryContext memory);
  ~ErrorHome();
  ErrorHome(const ErrorHome&) = delete;
  ErrorHome& operator=(const ErrorHome&) = delete;

 private:
  MemoryContext outer_;
};

// An error that the server raised or that a room raised through it.
class Error {
 public:
  explicit Error(ErrorData* data) : data_(data) {}
  ErrorData* data() const { return data_; }
  int sqlstate() const { return data_->sqlerrcode; }
  std::string sqlstate_text() const { return unpack_sql_state(data_->sqlerrcode); }
  const char* message() const { return data_->message; }

 private:
  ErrorData* data_;
};

struct Complaint {
  SqlState sqlstate;
  std::string message; // in the server's style: lower case, no full stop
  std::string detail = {};
  std::string hint = {}; // a sentence that says what to do
};

[[noreturn]] void raise(const Complaint& complaint);
void warn(const Complaint& complaint);

// What a guard has to put back after a jump.
struct Surroundings {
  sigjmp_buf* exception_stack = PG_exception_stack;
  ErrorContextCallback* context_stack = error_context_stack;
  MemoryContext memory = CurrentMemoryContext;

  void restore() const {
    PG_exception_stack = exception_stack;
    error_context_stack = context_stack;
  }
  [[noreturn]] void throw_caught() const;
};

// Calls Function(arguments...), which may raise. Its frame, and every frame that it calls, is
// skipped by the jump: it must own nothing, hence the trivially copyable arguments.
template <auto Function, typename... Arguments>
auto guarded(Arguments... arguments) {
  using Result = std::invoke_result_t<decltype(Function), Arguments...>;
  static_assert((std::is_trivially_copyable_v<Arguments> && ...));
  static_assert(std::is_void_v<Result> || std::is_trivially_copyable_v<Result>);

  const Surroundings surroundings;
  sigjmp_buf jump;
  if (sigsetjmp(jump, 0) != 0) surroundings.throw_caught();

  PG_exception_stack = &jump;
  if constexpr (std::is_void_v<Result>) {
    Function(arguments...);
    surroundings.restore();
  } else {
    Result result = Function(arguments...);
    surroundings.restore();
    return result;
  }
}

// The same for a destructor, which must not raise: if Function does (a disk that fails), the
// session ends.
[[noreturn]] void end_session();
template <auto Function, typename... Arguments>
void certainly(Arguments... arguments) noexcept {
  try {
    guarded<Function>(arguments...);
  } catch (const Error&) {
    end_session();
  }
}

} // namespace jobq::pg
