# The truth about sources and flags; CMake asks it (make -s print-SRCS). A new room is one word in a list below.

EXTENSION = jobq
MODULE_big = jobq
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" jobq.control)

# One word is one room: src/FLOOR/ROOM.cpp.
CORE_ROOMS = back_off calendar cron cron_field cron_text due duration grace groups instants interval_text lane lane_table \
    mistake pace timetable tokens upkeep verdict waiters
PG_ROOMS = background bridge call client_command clock command databases door ending error extension first_row index_walk \
    invalidation lock log \
    memory notify owner planner procedure random result_set role sequence setting shared_memory sleep snapshot standby statement table \
    text time_zone transaction turn value watch
QUEUE_ROOMS = administer agenda bounds bury cancel claim complete counts doors enqueue executors fail failure group job key lane_builder \
    lane_check lane_states lanes line notes queue ready_line renew require_preload reschedule retry survey sweep tag token wait
COMMAND_ROOMS = enqueue_sql home permit sql_command waiting
SCHEDULE_ROOMS = adopt change expression fire next_runs operate_schedule runs schedule schedule_job
WORKER_ROOMS = caller chores command_report executor executor_keeper health lane_keeper launcher manager roster schedule_keeper step troubles

# The install script is src/schema.sql, these rooms' SQL in this order, then src/grants.sql.
QUEUE_SQL_ROOMS = administer group enqueue claim renew complete wait fail cancel retry reschedule sweep counts lane_states views
COMMAND_SQL_ROOMS = enqueue_sql sql_jobs
SCHEDULE_SQL_ROOMS = next_runs schedule_job operate_schedule fire adopt schedules
WORKER_SQL_ROOMS = health

CORE_SRCS = $(CORE_ROOMS:%=src/core/%.cpp)
PG_SRCS = $(PG_ROOMS:%=src/pg/%.cpp)
QUEUE_SRCS = $(QUEUE_ROOMS:%=src/queue/%.cpp)
COMMAND_SRCS = $(COMMAND_ROOMS:%=src/command/%.cpp)
SCHEDULE_SRCS = $(SCHEDULE_ROOMS:%=src/schedule/%.cpp)
WORKER_SRCS = $(WORKER_ROOMS:%=src/worker/%.cpp)
SRCS = src/jobq.cpp src/settings.cpp $(CORE_SRCS) $(PG_SRCS) $(QUEUE_SRCS) $(COMMAND_SRCS) $(SCHEDULE_SRCS) \
    $(WORKER_SRCS)
SQL_SRCS = src/schema.sql $(QUEUE_SQL_ROOMS:%=src/queue/%.sql) $(COMMAND_SQL_ROOMS:%=src/command/%.sql) \
    $(SCHEDULE_SQL_ROOMS:%=src/schedule/%.sql) \
    $(WORKER_SQL_ROOMS:%=src/worker/%.sql) src/grants.sql
BRIDGE_SRCS = $(sort $(wildcard test/bridge/*.cpp))

# Objects stand apart from the sources, so that two compilers can work on one checkout.
OBJDIR = build/obj
objects_of = $(patsubst %.cpp,$(OBJDIR)/%.o,$(1))
OBJS = $(call objects_of,$(SRCS))
BRIDGE_OBJS = $(call objects_of,$(BRIDGE_SRCS))

DATA_built = jobq--$(EXTVERSION).sql
DATA = $(sort $(wildcard src/upgrade/jobq--*.sql))
EXTRA_CLEAN = build

REGRESS = $(sort $(basename $(notdir $(wildcard sql/*.sql))))
REGRESS_OPTS = --inputdir=. --load-extension=jobq
ISOLATION = $(sort $(basename $(notdir $(wildcard test/isolation/specs/*.spec))))
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=jobq
TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl

WARNINGS = -Wall -Wextra -Wno-unused-parameter -Wno-register
DIALECT = -std=c++20 $(WARNINGS)
# Objects that are good enough with -Werror are not built again without.
WERROR ?= $(filter -Werror,$(file <$(OBJDIR)/flags))
PG_CPPFLAGS = -Isrc -DJOBQ_VERSION='"$(EXTVERSION)"'
PG_CXXFLAGS = $(DIALECT) -fvisibility=hidden $(CLANG_FLAGS) $(if $(WERROR),-Werror)
SHLIB_LINK = -Wl,--version-script=dev/exports.map -lstdc++

# The server was configured for gcc: clang meets flags and attributes that it does not know.
CLANG_FLAGS = $(if $(findstring clang,$(CXX)),-Wno-unknown-warning-option -Wno-ignored-attributes)

# Functions called through the executor gain nothing from bitcode, and it would need clang to build.
override with_llvm := no

PG_MAJOR ?= 15
PG_CONFIG ?= $(firstword $(wildcard /usr/lib/postgresql/$(PG_MAJOR)/bin/pg_config) pg_config)
export PG_MAJOR PG_CONFIG

.DEFAULT_GOAL = all

# These work on a machine that has no PostgreSQL yet; `setup` brings it.
HOUSE_GOALS = setup check check-% demo bench format
GOALS = $(or $(MAKECMDGOALS),all)
ifeq (,$(filter-out $(HOUSE_GOALS),$(GOALS)))

.PHONY: setup check demo bench format

setup:
	dev/setup

check: setup
	dev/check

# One suite: check-build, check-lint, check-unit, check-bridge, check-regress, ...
check-%: setup
	dev/check $*

demo: setup
	demo/run

# Measurements draw charts, tests do not.
bench: setup
	dev/setup python3-matplotlib
	bench/queue

format:
	clang-format -i $$(find src test -name '*.cpp' -o -name '*.hpp')

else ifneq (,$(filter $(HOUSE_GOALS),$(GOALS)))

.PHONY: $(GOALS)
.NOTPARALLEL:
$(GOALS):
	@$(MAKE) $@

else

PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq (,$(wildcard $(PGXS)))
$(error "$(PG_CONFIG) --pgxs" finds no server to build for: run "make setup" or name another PG_CONFIG)
endif
include $(PGXS)

# Warnings are about our code, not the server's headers.
override CPPFLAGS := $(patsubst -I/%,-isystem /%,$(CPPFLAGS))

.PHONY: FORCE objects warnings bridge install-bridge

# Rebuilds everything when the compiler or a flag has changed.
$(OBJDIR)/flags: FORCE | $(OBJDIR)
	$(file >$@.new,$(CXX) $(CXXFLAGS) $(CPPFLAGS))
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(OBJDIR):
	mkdir -p $@

$(OBJDIR)/%.o: %.cpp $(OBJDIR)/flags
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(CPPFLAGS) -MMD -MP -c -o $@ $<

-include $(patsubst %.o,%.d,$(OBJS) $(BRIDGE_OBJS))

$(shlib): dev/exports.map Makefile

$(DATA_built): $(SQL_SRCS) jobq.control Makefile
	{ printf '%s\n' '\echo Use "CREATE EXTENSION jobq" to load this file. \quit'; cat $(SQL_SRCS); } >$@

objects: $(OBJS) $(BRIDGE_OBJS)

# Each compiler in a folder of its own.
warnings: warnings-g++ warnings-clang++
warnings-%:
	$(MAKE) objects CXX=$* WERROR=1 OBJDIR=build/warnings/$*

# A module for the tests alone: it raises, throws and counts destructors through the floor src/pg.
bridge: $(OBJDIR)/bridge.so
$(OBJDIR)/bridge.so: $(BRIDGE_OBJS) $(call objects_of,$(PG_SRCS) $(CORE_SRCS))
	$(COMPILER) -shared -o $@ $^ $(LDFLAGS) $(LDFLAGS_SL) -lstdc++

install-bridge: bridge
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)'
	$(INSTALL_SHLIB) $(OBJDIR)/bridge.so '$(DESTDIR)$(pkglibdir)/'

print-%:
	$(info $($*)) @:

endif
