# podsim: make, make run, make check. Works by itself; ./configure (optional) writes config.mk.
# Needs GNU make. `make V=1` shows commands; `make help` lists targets and variables.

VERSION = 0.1.0

-include config.mk

# ---- what a builder may set: on the command line, or through ./configure in config.mk ----
ifeq ($(origin CC),default)
CC = gcc
endif
ifeq ($(origin AR),default)
AR = ar
endif
PREFIX ?= /usr/local
DESTDIR ?=
CFLAGS ?= -O2 -g
# SANITIZE=address,undefined or thread; COVERAGE=1; WERROR=1. Each keeps its objects in a folder of its own.
SANITIZE ?=
COVERAGE ?=
WERROR ?=
# DEPS=no: run and check do not look for missing Debian packages
DEPS ?=
# make check: UPDATE=1 rewrites golden files, TESTS="WORD..." takes only tests whose path has a WORD
UPDATE ?=
TESTS ?=
PKG_CONFIG ?= pkg-config
CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy

PACKAGES = glib-2.0 libxml-2.0 yaml-0.1 zlib
# What the program does without, saying so: SQLITE=no leaves it out even where it is there
SQLITE ?= $(shell $(PKG_CONFIG) --exists sqlite3 2>/dev/null && echo yes)
# MPI=no likewise; where it is found it becomes a module of its own, which is loaded under mpirun alone
MPI_PACKAGE := $(if $(filter no,$(MPI)),,$(firstword $(foreach package,ompi-c mpich mpi-c,$(shell $(PKG_CONFIG) --exists $(package) 2>/dev/null && echo $(package)))))
OPTIONAL_PACKAGES = $(if $(filter yes,$(SQLITE)),sqlite3)
TEST_PACKAGES = check

# ---- derived ----
MAKEFLAGS += --no-print-directory --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
# Kept, or make would delete the objects of test programs as intermediate files and build them anew
.SECONDARY:

comma := ,
quote = '$(subst ','\'',$(1))'
Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

BUILD = build$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))$(if $(COVERAGE),-coverage)

# -isystem: our warnings are for our code, not for the macros of a library's headers
PACKAGE_CFLAGS := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags $(PACKAGES) $(OPTIONAL_PACKAGES) 2>/dev/null))
# libxml2 is loaded when a file needs it (base/xml-libxml.c)
PACKAGE_LIBS := $(shell $(PKG_CONFIG) --libs $(filter-out libxml-2.0,$(PACKAGES)) $(OPTIONAL_PACKAGES) 2>/dev/null)
TEST_CFLAGS = $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags $(TEST_PACKAGES) 2>/dev/null))
TEST_LIBS = $(shell $(PKG_CONFIG) --libs $(TEST_PACKAGES) 2>/dev/null)

WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
  -Wvla -Wundef -Wformat=2 $(if $(WERROR),-Werror)

DEFINES = -D_GNU_SOURCE \
  -DGLIB_VERSION_MIN_REQUIRED=GLIB_VERSION_2_74 -DGLIB_VERSION_MAX_ALLOWED=GLIB_VERSION_2_74 \
  -DPOD_SOURCE_DIR='"$(CURDIR)"' -DPOD_DATA_DIR='"$(PREFIX)/share/podsim"' -DPOD_VERSION='"$(VERSION)"' \
  $(if $(filter yes,$(SQLITE)),-DPOD_HAS_SQLITE)

# ISO rules for multiply-add on every machine: contraction would change the last digits of results
LANGUAGE = -std=c17 -ffp-contract=off -pthread

# A sanitizer's report ends the program, so that no test can pass over it
INSTRUMENT = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
  $(if $(COVERAGE),--coverage -O0)

# GLib's locks are invisible to ThreadSanitizer unless tests/tools/tsan-glib.c stands in between
GLIB_SYNC = mutex_lock mutex_unlock mutex_trylock cond_wait cond_wait_until once_init_enter once_init_leave \
  async_queue_push async_queue_pop async_queue_try_pop async_queue_push_front async_queue_timeout_pop thread_pool_new thread_pool_push thread_pool_free
ifneq ($(filter thread,$(subst $(comma), ,$(SANITIZE))),)
TSAN_OBJECT = $(BUILD)/obj/tests/tools/tsan-glib.o
TSAN_LINK = $(TSAN_OBJECT) $(GLIB_SYNC:%=-Wl,--wrap=g_%)
endif

# What `gcc -fsyntax-only` needs as well (tests/check-modules.sh)
PARSE_FLAGS = $(LANGUAGE) $(WARNINGS) -Isrc $(DEFINES) $(PACKAGE_CFLAGS) $(CPPFLAGS)
COMPILE = $(CC) $(PARSE_FLAGS) $(CFLAGS) $(INSTRUMENT)
LINK = $(CC) $(CFLAGS) $(INSTRUMENT) -pthread $(LDFLAGS)
LIBS = $(TSAN_LINK) $(PACKAGE_LIBS) -lm -lpthread -ldl
# podsim itself has its libraries inside where their archives are there (STATIC=no: never): finding and relocating them took as long as a
# small step. Tests are linked as ever, which is quicker.
STATIC ?= $(if $(SANITIZE)$(COVERAGE),no,yes)
archive = $(if $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a)),-l:lib$(1).a,-l$(1))
PROGRAM_LIBS := $(if $(filter no,$(STATIC)),$(PACKAGE_LIBS),$(foreach flag,$(filter-out -lm -lpthread -pthread -ldl,$(shell $(PKG_CONFIG) --static --libs \
  $(filter-out libxml-2.0,$(PACKAGES)) $(OPTIONAL_PACKAGES) 2>/dev/null)),$(if $(filter -l%,$(flag)),$(call archive,$(flag:-l%=%)),$(flag))))

MPI_SOURCE = src/search/mpi-transport.c
SOURCES := $(filter-out $(MPI_SOURCE),$(sort $(wildcard src/*/*.c)))
# Style and script of pages (ASCII): arrays of the library, pod_asset_page_css and pod_asset_page_js
ASSETS := $(sort $(wildcard src/*/*.css src/*/*.js))
CLI_SOURCES := $(filter src/cli/%,$(SOURCES))
LIB_SOURCES := $(filter-out src/cli/%,$(SOURCES))
UNIT_SOURCES := $(sort $(wildcard tests/unit/test-*.c tests/model/test-*.c))
# Helpers that every Check program is linked with
SUPPORT_SOURCES := $(sort $(wildcard tests/support/*.c))
FUZZ_SOURCES := $(sort $(wildcard tests/fuzz/fuzz-*.c))
BENCH_SOURCES := $(sort $(wildcard tests/bench/*.c))

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
asset_object = $(patsubst %,$(BUILD)/obj/%.o,$(1))
program = $(patsubst tests/%.c,$(BUILD)/tests/%,$(1))

PODSIM = $(BUILD)/podsim
MPI_MODULE = $(if $(MPI_PACKAGE),$(BUILD)/podsim-mpi.so)
LIBRARY = $(BUILD)/libpodsim.a
UNIT_PROGRAMS = $(call program,$(UNIT_SOURCES))
FUZZ_PROGRAMS = $(call program,$(FUZZ_SOURCES))
BENCH_PROGRAMS = $(call program,$(BENCH_SOURCES))
TRACE_CHECK = $(BUILD)/tests/tools/trace-check
ASTRA_CHECK = $(BUILD)/tests/tools/astra-check
TEST_PROGRAMS = $(UNIT_PROGRAMS) $(FUZZ_PROGRAMS) $(BUILD)/tests/table-check $(TRACE_CHECK) $(ASTRA_CHECK)

# Without -j, run and check still use every core
jobs = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 1))

.PHONY: all
all: $(PODSIM) $(LIBRARY) $(MPI_MODULE)
	@:

$(PODSIM): $(call object,$(CLI_SOURCES)) $(LIBRARY) $(BUILD)/cli-objects | $(TSAN_OBJECT)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(if $(filter no,$(STATIC)),,-no-pie) -o $@ $(filter %.o,$^) $(LIBRARY) $(TSAN_LINK) $(PROGRAM_LIBS) -lm -lpthread -ldl

$(BUILD)/podsim-mpi.so: $(MPI_SOURCE) src/search/transport.h $(BUILD)/flags
	$(call say,LINK,$@)
	$(Q)$(CC) $(PARSE_FLAGS) $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags $(MPI_PACKAGE))) $(CFLAGS) -fPIC -shared -o $@ $< $(shell $(PKG_CONFIG) --libs $(MPI_PACKAGE))

# Which XML files came with podsim and are valid: base/xml-known.h
XML_SCHEMAS := $(sort $(wildcard topologies/*.xsd topologies/*/*.xsd workloads/*.xsd workloads/*/*.xsd))
XML_FILES := $(sort $(foreach folder,$(dir $(XML_SCHEMAS)),$(wildcard $(folder)*.xml)))
KNOWN_XML = $(BUILD)/tools/known-xml
KNOWN_OBJECT = $(BUILD)/obj/known-xml.o

$(KNOWN_XML): build-aux/known-xml.c $(call object,$(filter src/base/%,$(LIB_SOURCES))) | $(TSAN_OBJECT)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(COMPILE) -o $@ $^ $(LIBS)

# The list of names: for a file that was taken away
$(BUILD)/known-xml.c: $(KNOWN_XML) $(XML_SCHEMAS) $(XML_FILES) $(BUILD)/xml-files
	$(Q)ASAN_OPTIONS=detect_leaks=0 $(KNOWN_XML) $(XML_SCHEMAS) >$@

$(BUILD)/xml-files: FORCE
	$(call record,$(XML_FILES))

$(KNOWN_OBJECT): $(BUILD)/known-xml.c
	$(Q)mkdir -p $(@D) && $(COMPILE) -c -o $@ $<

# From nothing each time: ar would keep the members whose source is gone
$(LIBRARY): $(call object,$(LIB_SOURCES)) $(call asset_object,$(ASSETS)) $(KNOWN_OBJECT) $(BUILD)/library-objects
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(BUILD)/obj/src/%.o: src/%.c $(BUILD)/flags
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(COMPILE) -MMD -MP -c -o $@ $<

# The bytes and a 0 behind them; the declaration in front is what a header says of it, too
$(BUILD)/obj/%.asset.c: %
	@mkdir -p $(@D)
	$(Q)name=pod_asset_$$(printf %s '$(<F)' | tr .- __); \
	  { printf 'extern const char %s[];\nconst char %s[] = {\n' $$name $$name; \
	    od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g'; echo '0};'; } >$@

$(call asset_object,$(ASSETS)): $(BUILD)/obj/%.o: $(BUILD)/obj/%.asset.c $(BUILD)/flags
	$(call say,CC,$*)
	$(Q)$(COMPILE) -c -o $@ $<

$(BUILD)/obj/tests/%.o: tests/%.c $(BUILD)/flags
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(COMPILE) -Itests $(TEST_CFLAGS) -MMD -MP -c -o $@ $<

$(UNIT_PROGRAMS): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(call object,$(SUPPORT_SOURCES)) $(LIBRARY) | $(TSAN_OBJECT)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) $(LIBRARY) $(TEST_LIBS) $(LIBS)

# A fuzz target defines LLVMFuzzerTestOneInput; here it replays its corpus, `make fuzz` explores
$(FUZZ_PROGRAMS): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(BUILD)/obj/tests/tools/fuzz-replay.o $(LIBRARY) | $(TSAN_OBJECT)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) $(LIBRARY) $(LIBS)

$(BENCH_PROGRAMS): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(LIBRARY) | $(TSAN_OBJECT)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) $(LIBRARY) $(LIBS)

$(BUILD)/tests/table-check: $(BUILD)/obj/tests/tools/table-check.o $(LIBRARY) | $(TSAN_OBJECT)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $< $(LIBRARY) $(LIBS)

# The judge of tests/check-trace.sh
$(TRACE_CHECK): $(BUILD)/obj/tests/tools/trace-check.o $(call object,$(SUPPORT_SOURCES)) $(LIBRARY) | $(TSAN_OBJECT)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) $(LIBRARY) $(TEST_LIBS) $(LIBS)

# The judge of tests/check-astra.sh
$(ASTRA_CHECK): $(BUILD)/obj/tests/tools/astra-check.o $(LIBRARY) | $(TSAN_OBJECT)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) $(LIBRARY) $(LIBS)

# Files that hold a command or a list and change only with it: what depends on them is built again
# when CC, CFLAGS, PREFIX or VERSION changes, or when a source file is removed
record = @mkdir -p $(BUILD); printf '%s\n' $(call quote,$(1)) | cmp -s - $@ || printf '%s\n' $(call quote,$(1)) >$@

$(BUILD)/flags: FORCE
	@$(PKG_CONFIG) --exists $(PACKAGES) 2>/dev/null || { \
	  echo 'podsim: pkg-config does not find all of: $(PACKAGES); on Debian, `make deps` installs them' >&2; exit 1; }
	$(call record,$(COMPILE) $(LDFLAGS))

$(BUILD)/library-objects: FORCE
	$(call record,$(LIB_SOURCES) $(ASSETS))

$(BUILD)/cli-objects: FORCE
	$(call record,$(CLI_SOURCES))

.PHONY: FORCE
FORCE:

-include $(wildcard $(BUILD)/obj/src/*/*.d $(BUILD)/obj/tests/*/*.d)

# ---- run and check: first the packages, then make anew, which then finds pkg-config ----
SECTIONS = build run test

.PHONY: deps
deps:
	$(Q)build-aux/install-deps.sh $(SECTIONS)

.PHONY: run run-now
run:
	$(Q)$(if $(filter no,$(DEPS)),:,build-aux/install-deps.sh build run)
	$(Q)$(MAKE) $(jobs) all
	$(Q)$(MAKE) run-now

RUN_DIR = build/run
run-now:
	$(Q)mkdir -p $(RUN_DIR)
	$(PODSIM) run --topology tpu-v5p:16x16x16 --model llama3-70b --seq-len 4096 --global-batch 1024 \
	  --layout "fsdp=1024 tp=4" --trace $(RUN_DIR)/llama3-70b.json.gz --json $(RUN_DIR)/llama3-70b.json --plot $(RUN_DIR) \
	  --report $(RUN_DIR)/llama3-70b.html
	@echo
	@echo 'timeline  $(RUN_DIR)/llama3-70b.json.gz   open it in https://ui.perfetto.dev or chrome://tracing'
	@echo 'numbers   $(RUN_DIR)/llama3-70b.json'
	@echo 'report    $(RUN_DIR)/llama3-70b.html   open it in a browser'
	@echo 'pictures  $(RUN_DIR)/'; ls $(RUN_DIR)/*.svg $(RUN_DIR)/*.png 2>/dev/null | sed 's/^/          /'

# A build that fails is a failure that is counted
BUILT = $(MAKE) $(jobs) all $(1) || { echo 'the build failed'; echo '0 passed, 1 failed'; exit 1; }
TEST_ENV = BUILD=$(call quote,$(CURDIR)/$(BUILD)) SRC=$(call quote,$(CURDIR)) SANITIZE=$(call quote,$(SANITIZE)) \
  UPDATE=$(call quote,$(UPDATE)) POD_CC=$(call quote,$(CC)) POD_CFLAGS=$(call quote,$(PARSE_FLAGS)) V=$(V)

.PHONY: check check-now test-programs
check:
	$(Q)$(if $(filter no,$(DEPS)),:,build-aux/install-deps.sh build run test)
	+$(Q)$(call BUILT,test-programs)
	$(Q)$(MAKE) check-now

check-now:
	$(Q)$(TEST_ENV) tests/run.sh $(TESTS)

test-programs: $(TEST_PROGRAMS)
	@:

.PHONY: check-browser check-browser-now
check-browser:
	$(Q)$(if $(filter no,$(DEPS)),:,build-aux/install-deps.sh build run browser)
	+$(Q)$(call BUILT)
	$(Q)$(MAKE) check-browser-now

check-browser-now:
	$(Q)$(TEST_ENV) tests/run.sh --browser

# ---- measurements: cost tables from workloads/measured, and how far off they are ----
.PHONY: calibrate calibrate-training validate published-layouts
calibrate: all
	$(Q)PODSIM=$(CURDIR)/$(PODSIM) build-aux/calibrate.sh
	$(Q)PODSIM=$(CURDIR)/$(PODSIM) build-aux/calibrate-kernels.sh

calibrate-training: all
	$(Q)PODSIM=$(CURDIR)/$(PODSIM) build-aux/calibrate-training.sh

validate: all
	$(Q)PODSIM=$(CURDIR)/$(PODSIM) build-aux/validate.sh
	$(Q)PODSIM=$(CURDIR)/$(PODSIM) build-aux/validate-kernels.sh
	$(Q)PODSIM=$(CURDIR)/$(PODSIM) build-aux/validate-training.sh

published-layouts: all
	$(Q)PODSIM=$(CURDIR)/$(PODSIM) build-aux/published-layouts.sh

.PHONY: bench bench-growth
bench: all $(BENCH_PROGRAMS)
	$(Q)BUILD=$(CURDIR)/$(BUILD) build-aux/bench.sh

bench-growth: all
	$(Q)BUILD=$(CURDIR)/$(BUILD) build-aux/growth.sh

# clang only: builds the fuzz targets with libFuzzer; run one with its corpus folder as argument
.PHONY: fuzz
fuzz:
	$(Q)$(MAKE) CC=clang SANITIZE=fuzzer-no-link,address,undefined fuzz-now

.PHONY: fuzz-now
fuzz-now: $(LIBRARY) $(call object,$(FUZZ_SOURCES))
	$(Q)mkdir -p $(BUILD)/tests/fuzz; for name in $(basename $(notdir $(FUZZ_SOURCES))); do \
	  $(LINK) -fsanitize=fuzzer -o $(BUILD)/tests/fuzz/$$name $(BUILD)/obj/tests/fuzz/$$name.o $(LIBRARY) $(LIBS) || exit 1; \
	  echo "$(BUILD)/tests/fuzz/$$name tests/fuzz/corpus/$$name"; done

# ---- install ----
BIN_DIR = $(DESTDIR)$(PREFIX)/bin
LIB_DIR = $(DESTDIR)$(PREFIX)/lib
DATA_DIR = $(DESTDIR)$(PREFIX)/share/podsim
MAN_DIR = $(DESTDIR)$(PREFIX)/share/man/man1
COMPLETION_DIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
DATA_FOLDERS = $(wildcard topologies workloads traces schemas)
DATA_FILES = $(if $(DATA_FOLDERS),$(shell find $(DATA_FOLDERS) -type f | LC_ALL=C sort))
# Schemas that stand beside their reader
SCHEMAS = $(sort $(wildcard src/*/*.xsd src/*/*.rng))

.PHONY: install
install: all
	install -d $(BIN_DIR) $(LIB_DIR) $(DATA_DIR)
	install -m 755 $(PODSIM) $(BIN_DIR)/podsim
	install -m 644 $(LIBRARY) $(LIB_DIR)/libpodsim.a
	$(if $(MPI_MODULE),install -D -m 755 $(MPI_MODULE) $(LIB_DIR)/podsim/podsim-mpi.so)
	@for file in $(DATA_FILES); do install -D -m 644 $$file $(DATA_DIR)/$$file || exit 1; done
	@for file in $(SCHEMAS); do install -D -m 644 $$file $(DATA_DIR)/schemas/$${file##*/} || exit 1; done
	@echo 'installed topologies, workloads, traces and schemas in $(DATA_DIR)'
	$(if $(wildcard docs/man/podsim.1),install -D -m 644 docs/man/podsim.1 $(MAN_DIR)/podsim.1)
	$(if $(wildcard docs/completion/podsim),install -D -m 644 docs/completion/podsim $(COMPLETION_DIR)/podsim)

.PHONY: uninstall
uninstall:
	rm -f $(BIN_DIR)/podsim $(LIB_DIR)/libpodsim.a $(LIB_DIR)/podsim/podsim-mpi.so $(MAN_DIR)/podsim.1 $(COMPLETION_DIR)/podsim
	rm -rf $(DATA_DIR)

.PHONY: dist
dist:
	$(Q)mkdir -p build
	git archive --prefix=podsim-$(VERSION)/ -o build/podsim-$(VERSION).tar.gz HEAD

# ---- source ----
C_FILES = $(sort $(wildcard src/*/*.[ch] tests/*/*.[ch]))
SCRIPTS = $(sort $(wildcard build-aux/*.sh tests/*.sh tests/*/*.sh .ci/run))
# Says which package to install when a tool is missing
need = command -v $(1) >/dev/null || { echo 'podsim: $(1) is missing: make deps SECTIONS=lint' >&2; exit 1; }

.PHONY: format
format:
	@$(call need,$(CLANG_FORMAT))
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)

.PHONY: check-format
check-format:
	@$(call need,$(CLANG_FORMAT))
	$(Q)$(CLANG_FORMAT) --dry-run --Werror $(C_FILES)

.PHONY: lint
lint:
	@$(call need,$(CLANG_TIDY))
	@$(call need,cppcheck)
	@$(call need,shellcheck)
	$(Q)shellcheck $(SCRIPTS)
	$(Q)cppcheck --quiet --std=c11 --library=gtk --inline-suppr --error-exitcode=1 \
	  --enable=warning,performance,portability --suppress=unknownMacro -Isrc src
	$(Q)$(CLANG_TIDY) --quiet $(SOURCES) -- $(PARSE_FLAGS)

.PHONY: docs
docs: all
	$(Q)if test -x docs/generate.sh; then PODSIM=$(CURDIR)/$(PODSIM) docs/generate.sh; \
	  else echo 'docs/ is read as it is; there is nothing to generate'; fi

.PHONY: clean
clean:
	rm -rf build $(filter-out build-aux,$(wildcard build-*)) autom4te.cache config.log config.status

.PHONY: help
help:
	@echo 'make              build/podsim and build/libpodsim.a'
	@echo 'make run          install what is missing, build, simulate one training step (results in build/run)'
	@echo 'make check        install what is missing, build, run every test; UPDATE=1 TESTS="WORD..." V=1'
	@echo 'make check-browser, bench, fuzz    tests in a browser, speed, libFuzzer (clang)'
	@echo 'make bench-growth                 how a step grows with ranks, layers and microbatches, and what a rank takes; GROWTH=131072 ranks at most'
	@echo 'make calibrate-training           what steps lose, fitted to half of the published ones (docs/validation.md)'
	@echo 'make calibrate, validate           cost tables from the measured ones, and their errors (docs/model/libraries.md, kernels.md)'
	@echo 'make published-layouts            published layouts beside the best that a search finds (docs/guide/search.md)'
	@echo 'make install      PREFIX=/usr/local DESTDIR=; also uninstall, dist'
	@echo 'make format       clang-format; also check-format, lint, docs, clean, deps SECTIONS="build run test browser lint"'
	@echo 'variables         CC CFLAGS CPPFLAGS LDFLAGS SANITIZE=address,undefined|thread COVERAGE=1 WERROR=1 DEPS=no V=1'
