#include "pg/client_command.hpp"

#include <algorithm>
#include <csignal>

#include "pg/background.hpp"
#include "pg/clock.hpp"
#include "pg/compat.hpp"
#include "pg/first_row.hpp"
#include "pg/memory.hpp"

extern "C" {
#include "jit/jit.h"
#include "parser/analyze.h"
#include "parser/parser.h"
#include "postmaster/bgworker.h"
#include "pgstat.h"
#include "replication/slot.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "utils/portal.h"
#include "utils/timeout.h"
}

namespace jobq::pg {

namespace {

// How long a command that was cancelled may go on before its process is ended.
constexpr core::Microseconds kPatience = 5 * core::kSecond;
constexpr int kTick = 1000; // milliseconds

// Written while no signal can be about it: before `is_in` is set.
Limits limits{};
core::Microseconds stopped_at = 0;
volatile std::sig_atomic_t stop = static_cast<int>(Stop::none);
volatile std::sig_atomic_t is_in = 0;
bool is_accepting = false;
bool has_other_role = false; // than the one that it connected as, from the start

TimeoutId tick_timeout;
TimeoutId deadline_timeout;

Stop reason_to_stop() {
  if (is_asked_to_leave()) return Stop::leaving;
  if (limits.is_stopped()) return Stop::asked;
  if (monotonic_now() >= limits.deadline) return Stop::deadline;
  return Stop::none;
}

// A function may catch the cancellation and go on: so it comes again each second.
void look_at_limits() {
  if (is_in == 0) return;
  Stop reason = reason_to_stop();
  if (reason == Stop::none) return;
  if (stop == static_cast<int>(Stop::none)) {
    stop = static_cast<int>(reason);
    stopped_at = monotonic_now();
  }
  if (monotonic_now() - stopped_at > kPatience)
    ProcDiePending = true;
  else
    QueryCancelPending = true;
  InterruptPending = true;
}

void on_poke(SIGNAL_ARGS) {
  int before = errno;
  look_at_limits();
  SetLatch(MyLatch);
  errno = before;
}

void on_timeout() {
  look_at_limits();
  SetLatch(MyLatch);
}

// Its name is shown as a client's would be, unless its role or database says another one.
void accept() {
  SetConfigOption("application_name", MyBgworkerEntry->bgw_type, PGC_USERSET,
                  PGC_S_DYNAMIC_DEFAULT);
  tick_timeout = RegisterTimeout(USER_TIMEOUT, on_timeout);
  deadline_timeout = RegisterTimeout(USER_TIMEOUT, on_timeout);
  pqsignal(SIGUSR2, on_poke);
}

// The server's timers count by the wall clock; what they set off looks at the monotonic one.
void arm() {
  constexpr core::Microseconds kLongest = core::kDay;
  core::Microseconds left =
      std::clamp<core::Microseconds>(limits.deadline - monotonic_now(), 1000, kLongest);
  enable_timeout_every(tick_timeout, GetCurrentTimestamp() + kTick * 1000L, kTick);
  enable_timeout_at(deadline_timeout, GetCurrentTimestamp() + left);
}

// Timers that the command had armed go with its transaction, but for this one.
void disarm() {
  is_in = 0;
  disable_timeout(tick_timeout, false);
  disable_timeout(deadline_timeout, false);
  disable_timeout(STATEMENT_TIMEOUT, false);
  QueryCancelPending = false;
}

void disarm_statement() {
  if (get_timeout_active(STATEMENT_TIMEOUT)) disable_timeout(STATEMENT_TIMEOUT, false);
}

// In a background process nobody else does.
void arm_statement() {
  if (StatementTimeout <= 0) return disarm_statement();
  if (!get_timeout_active(STATEMENT_TIMEOUT))
    enable_timeout_after(STATEMENT_TIMEOUT, StatementTimeout);
}

struct Text {
  const char* sql;
  FirstRow* first;
  QueryCompletion completion; // of the last statement
};

void begin_transaction(bool& is_begun) {
  if (!is_begun) StartTransactionCommand();
  is_begun = true;
  arm_statement();
}

void end_transaction(bool& is_begun) {
  disarm_statement();
  if (is_begun) CommitTransactionCommand();
  is_begun = false;
}

// The server would copy from and to its own standard input and output.
void refuse_copy_to_client(RawStmt* statement) {
  if (!IsA(statement->stmt, CopyStmt)) return;
  auto* copy = reinterpret_cast<CopyStmt*>(statement->stmt);
  if (copy->filename == nullptr)
    ereport(ERROR,
            (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
             errmsg("cannot COPY %s in a SQL job", copy->is_from ? "FROM STDIN" : "TO STDOUT"),
             errhint("A SQL job has no client: copy from or to a file or program.")));
}

List* plan_statement(RawStmt* statement, const char* sql) {
  bool has_snapshot = analyze_requires_snapshot(statement);
  if (has_snapshot) PushActiveSnapshot(GetTransactionSnapshot());
  List* queries = pg_analyze_and_rewrite_fixedparams(statement, sql, nullptr, 0, nullptr);
  List* plans = pg_plan_queries(queries, sql, CURSOR_OPT_PARALLEL_OK, nullptr);
  if (has_snapshot) PopActiveSnapshot();
  return plans;
}

// What is made here outlives the transactions that a procedure ends.
void run_statement(RawStmt* statement, Text& text) {
  MemoryContextSwitchTo(MessageContext);
  refuse_copy_to_client(statement);
  List* plans = plan_statement(statement, text.sql);
  CHECK_FOR_INTERRUPTS();
  text.first->json = nullptr;
  text.first->is_cut = false;
  Portal portal = CreatePortal("", true, true);
  portal->visible = false;
  PortalDefineQuery(portal, nullptr, text.sql, CreateCommandTag(statement->stmt), plans, nullptr);
  PortalStart(portal, nullptr, 0, InvalidSnapshot);
  run_portal(portal, &text.first->receiver, &text.completion);
  PortalDrop(portal, false);
}

// SET LOCAL and SET TRANSACTION are about the transaction that follows them.
bool is_for_session(RawStmt* statement) {
  if (!IsA(statement->stmt, VariableSetStmt)) return false;
  auto* set = reinterpret_cast<VariableSetStmt*>(statement->stmt);
  return !set->is_local && set->kind != VAR_SET_MULTI;
}

// Returns how many statements were run by themselves.
int run_leading_settings(List* statements, Text& text) {
  int count = 0;
  for (; count < list_length(statements); ++count) {
    auto* statement = list_nth_node(RawStmt, statements, count);
    if (!is_for_session(statement)) break;
    bool is_begun = false;
    begin_transaction(is_begun);
    run_statement(statement, text);
    end_transaction(is_begun);
  }
  return count;
}

// The rules of the protocol's simple query.
void run_rest(List* statements, int from, Text& text) {
  const int last = list_length(statements) - 1;
  const bool is_one_transaction = last > from;
  bool is_begun = false;
  for (int i = from; i <= last; ++i) {
    auto* statement = list_nth_node(RawStmt, statements, i);
    begin_transaction(is_begun);
    if (is_one_transaction) BeginImplicitTransactionBlock();
    CHECK_FOR_INTERRUPTS();
    run_statement(statement, text);
    if (i == last) {
      if (is_one_transaction) EndImplicitTransactionBlock();
      end_transaction(is_begun);
    } else if (IsA(statement->stmt, TransactionStmt)) {
      end_transaction(is_begun);
    } else {
      CommandCounterIncrement();
      disarm_statement();
    }
  }
}

void refuse_open_block() {
  if (IsTransactionBlock())
    ereport(ERROR, (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
                    errmsg("the command ended inside a transaction block, which was rolled back"),
                    errhint("End it with COMMIT.")));
}

List* parse(const char* sql) {
  bool is_begun = false;
  begin_transaction(is_begun);
  MemoryContext before = MemoryContextSwitchTo(MessageContext);
  List* statements = pg_parse_query(sql);
  MemoryContextSwitchTo(before);
  end_transaction(is_begun);
  return statements;
}

// Whatever comes before us, no command runs with the owner's rights.
void require_own_rights() {
  Oid user = InvalidOid;
  int security_context = 0;
  GetUserIdAndSecContext(&user, &security_context);
  if (security_context != 0) elog(FATAL, "a command would run in a security context");
}

void run_text(Text* text) {
  require_own_rights();
  List* statements = parse(text->sql);
  run_rest(statements, run_leading_settings(statements, *text), *text);
  refuse_open_block();
}

void clean_up() {
  AbortOutOfAnyTransaction();
  PortalErrorCleanup();
  if (MyReplicationSlot != nullptr) ReplicationSlotRelease();
  jit_reset_after_error();
}

int count_statements(const char* sql) { return list_length(raw_parser(sql, RAW_PARSE_DEFAULT)); }

// What the server keeps for a query, for as long as one runs.
class QueryMemory {
 public:
  explicit QueryMemory(const char* sql) {
    MessageContext = CurrentMemoryContext;
    debug_query_string = sql;
    show_busy(sql);
  }
  ~QueryMemory() {
    debug_query_string = nullptr;
    MessageContext = nullptr;
    certainly<pgstat_report_stat>(false);
    show_idle();
  }
  QueryMemory(const QueryMemory&) = delete;
  QueryMemory& operator=(const QueryMemory&) = delete;

 private:
  TurnMemory memory_; // first: it is what the constructor finds
};

void begin_command(const Limits& given) {
  limits = given;
  stop = static_cast<int>(Stop::none);
  QueryCancelPending = false;
  is_in = 1;
  look_at_limits(); // what came before is about it as well
}

} // namespace

void require_sql(const std::string& text) {
  const TurnMemory memory;
  int statements = 0;
  try {
    statements = guarded<count_statements>(text.c_str());
  } catch (const Error& error) {
    if (error.sqlstate() != ERRCODE_SYNTAX_ERROR) throw;
    raise({.sqlstate = SqlState::syntax_error,
           .message = std::string("command is not SQL: ") + error.message(),
           .hint = "Pass one or more statements, as a client would send them."});
  }
  if (statements == 0)
    raise({.sqlstate = SqlState::syntax_error,
           .message = "command has no statement",
           .hint = "Pass one or more statements, as a client would send them."});
}

void accept_commands() {
  guarded<accept>();
  has_other_role = GetUserId() != GetSessionUserId();
  is_accepting = true;
}

CommandEnd run_as_client(const std::string& command, const Limits& given, std::size_t longest_row) {
  const ErrorHome home(CurrentMemoryContext);
  CommandEnd end;
  MemoryContext outer = CurrentMemoryContext;
  {
    const QueryMemory query(command.c_str());
    FirstRow first = empty_first_row(MessageContext, longest_row);
    Text text = {.sql = command.c_str(), .first = &first, .completion = {}};
    InitializeQueryCompletion(&text.completion);
    begin_command(given);
    try {
      guarded<arm>();
      guarded<run_text>(&text);
    } catch (const Error& error) {
      end.error = error;
    }
    certainly<disarm>();
    if (end.error) certainly<clean_up>();
    end.stop = static_cast<Stop>(stop);
    if (end.stop == Stop::none && is_asked_to_leave()) end.stop = Stop::leaving;
    end.tag = GetCommandTagName(text.completion.commandTag);
    end.rows = text.completion.nprocessed;
    if (!end.error && first.json != nullptr) end.first_row = first.json;
    end.is_cut = first.is_cut;
  }
  MemoryContextSwitchTo(outer);
  return end;
}

// What a role takes on by its settings (ALTER ROLE ... SET role) the server does not put back.
bool reset_session() {
  constexpr Limits kNone = {.deadline = core::kForever, .is_stopped = [] { return false; }};
  return !has_other_role && !run_as_client("DISCARD ALL", kNone, 0).error;
}

bool accepts_commands() { return is_accepting; }

} // namespace jobq::pg
