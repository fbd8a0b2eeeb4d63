# millrace: one Makefile for the whole tree. `make help` lists the verbs.
#
# Every object is compiled once, position independent, and serves two products:
#   $(BUILD)/millrace      the host: Lua and readline inside it, statically
#   $(BUILD)/millrace.so   the module for a plain `lua5.4`: all but src/repl and main, no Lua inside
#
# Everything that is built lies under $(BUILD), so two builds can live side by side:
#   make BUILD=build-clang CC=clang        make SAN=address,undefined

VERSION := 0.1.0

# ---------------------------------------------------------------- what a user may set

BUILD    ?= build$(if $(SAN),/san)
PREFIX   ?= /usr/local
# Debug information with functions and lines; that with variables (-g) takes a sixth more time and four times the space.
# ThreadSanitizer's build runs a few tests only: compiled without optimisation it is there in half the time.
CFLAGS   ?= $(if $(filter thread,$(SAN)),-O0,$(if $(SAN),-O1,-O2)) -g1
WERROR   ?= 0
# 1: the linker optimises across files, a tenth off the host's time a call. `make dist` does.
LTO      ?= 0
READLINE ?= $(call have,readline/readline.h)
# The CUDA backend is in where there is a toolkit to compile its kernels; a build without it (CUDA=0) is complete.
# The same binary runs with and without a GPU.
NVCC     ?= $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA     ?= $(if $(NVCC),1,0)
# Compute capabilities that get machine code of their own, of those that the toolkit knows; GPUs newer than the last
# compile its PTX. Fewer build sooner: CUDA_ARCHS=90.
CUDA_ARCHS ?= $(filter 75 80 86 89 90 100,$(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code)))
# Where the kernels are compiled to. Builds that differ in nothing else may share them.
IMAGE_DIR ?= $(BUILD)/gen/kernels
LUA      ?= lua5.4
TIMES    ?= $(if $(SAN),5,1)
# TESTS="tests/lua/event.lua ..." makes `make check` run only those.
TESTS    ?=
# A folder that keeps the kernels that tests compile. Without, each run compiles them again.
KERNEL_CACHE ?=

# ---------------------------------------------------------------- tools and libraries

ifeq ($(origin CC),default)
CC := $(if $(shell command -v gcc),gcc,cc)
endif
HOSTCC ?= $(CC)

PKG_CONFIG ?= pkg-config
# 1 if the compiler finds the header, else 0.
have = $(if $(shell printf '%s\n' '$(HASH)include <stdio.h>' '$(HASH)include <$(1)>' | $(CC) -E - >/dev/null 2>&1 && echo yes),1,0)
HASH := \#
COMMA := ,
SPACE := $(subst ,, )
# The static library where there is one (the compiler answers with a full path), else what pkg-config says.
static = $(or $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a)),$(2))

# Distributions do not agree on the name of Lua 5.4.
LUA_PC     := $(shell for p in lua5.4 lua-5.4 lua54 lua; do \
                $(PKG_CONFIG) --exists "$$p >= 5.4" "$$p < 5.5" 2>/dev/null && echo $$p && break; done)
LUA_CFLAGS := $(if $(LUA_PC),$(shell $(PKG_CONFIG) --cflags $(LUA_PC)))
LUA_LIBS   := $(call static,$(subst lua-5,lua5,$(LUA_PC)),$(if $(LUA_PC),$(shell $(PKG_CONFIG) --libs $(LUA_PC))))

READLINE := $(READLINE)
ifneq ($(READLINE),0)
READLINE_LIBS := $(call static,readline,-lreadline) $(call static,tinfo,$(call static,ncursesw,-lncurses))
endif

# ---------------------------------------------------------------- flags

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
            $(if $(filter-out 0,$(WERROR)),-Werror)

ALL_CPPFLAGS := -D_GNU_SOURCE -DMR_VERSION='"$(VERSION)"' -DMR_HAVE_READLINE=$(READLINE) \
                -DMR_HAVE_CUDA=$(CUDA) -Isrc $(LUA_CFLAGS) $(CPPFLAGS)
# Hidden: nobody replaces our functions at run time, so calls between files need no indirection.
ALL_CFLAGS   := -std=c11 -fPIC -fvisibility=hidden $(CFLAGS) $(WARNINGS)
ALL_LDFLAGS  := -static-libgcc $(LDFLAGS)
LIBS         := -ldl -lm -lpthread

ifneq ($(LTO),0)
ALL_CFLAGS  += -flto=auto
AR          := $(CC)-ar
endif

ifneq ($(SAN),)
# ThreadSanitizer does not follow fences, which kernels of the user's ask for; it says so at each.
SAN_FLAGS   := -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer $(if $(filter thread,$(SAN)),-Wno-tsan)
ALL_CFLAGS  += $(SAN_FLAGS)
ALL_LDFLAGS := $(SAN_FLAGS) $(LDFLAGS)
endif

# Flags of one folder: CFLAGS_<folder>. The operation bodies are loops for the vectoriser; a value must
# not depend on whether the compiler fused a multiply with an add.
# without where each variable is at each instruction: for those loops the compiler needs a sixth of its time to find out.
# Where speed does not count, the loops are compiled like everything else: with sanitizers -O3 takes three times as long.
VECTORISE  := $(if $(SAN)$(filter -O0,$(CFLAGS)),,1)
CFLAGS_ops := $(if $(VECTORISE),-O3) -fno-var-tracking -fno-math-errno -fno-trapping-math -ffp-contract=off
# With them gcc makes vectors of loops at -O2 wherever they cost less than they save, and registers of arrays, as at -O3.
# None of neighbours outside loops: two pointers that were just stored would be loaded as one vector, which waits for both.
VECTORS := $(if $(shell echo | $(CC) -fvect-cost-model=dynamic -E - 2>&1 >/dev/null),,-ftree-loop-vectorize -fno-tree-slp-vectorize -fvect-cost-model=dynamic -fpeel-loops)
# Rooms whose functions run once for an entry, a file or a kernel: -O2 takes half as long again to compile them, and no run is
# quicker. (Calls of bind/ would take 5 % longer.)
ROOMS_O1 := $(if $(VECTORISE),repl host files compile script graph trace waits ptx/read ptx/decode)
# The interpreter's loops over lanes, too; lanes.h is compiled a second time, for processors with AVX2 and FMA.
CFLAGS_ptx := -fno-math-errno -fno-trapping-math -ffp-contract=off
ifneq ($(filter x86_64-%,$(shell $(CC) -dumpmachine)),)
CFLAGS_ptx_v3 := -march=x86-64-v3
endif
# Under sanitizers a loop has no second version with the processor's fused multiply-add, and calls a function for each.
ifneq ($(SAN),)
CFLAGS_ops += $(if $(shell grep -sw -m 1 fma /proc/cpuinfo),-mfma)
endif
# For make check-san: Lua's collector can be asked to run in full before each call of ours that could run it.
ifneq ($(filter address%,$(SAN)),)
CFLAGS_bind := -include bind/gcstress.h
CFLAGS_repl := $(CFLAGS_bind)
CFLAGS_host := $(CFLAGS_bind)
endif
# Only types come from the toolkit: its libraries are opened at run time.
ifneq ($(CUDA),0)
CUDA_HOME   ?= $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
CFLAGS_cuda := -isystem $(CUDA_HOME)/include
# No fused multiply-adds but those written: values are those of the CPU bodies.
NVCC_FLAGS  := -std=c++17 -O3 --fmad=false -Isrc --fatbin --compress-mode=size \
               $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a)$(COMMA)code=sm_$(a)) \
               -gencode arch=compute_$(lastword $(CUDA_ARCHS))$(COMMA)code=compute_$(lastword $(CUDA_ARCHS))
# The interpreter of PTX has no tensor cores: the kernels do without.
PTX_FLAGS   := -DMR_CUDA_NO_TENSOR_CORES -std=c++17 -O3 --fmad=false -Isrc --ptx -arch=compute_$(firstword $(CUDA_ARCHS))
endif

# ---------------------------------------------------------------- files

# Folders of src, and the rooms inside them (scripts/layers.lua). src/mpi and the worker of src/compile are programs of their own.
SRC := $(filter-out src/mpi/% src/compile/worker/%,$(sort $(wildcard src/*/*.c src/*/*/*.c)))
ifeq ($(CUDA),0)
SRC := $(filter-out src/cuda/%,$(SRC))
endif
GEN := $(BUILD)/gen/embedded.c

obj  = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
HOST_OBJ := $(call obj,$(filter src/host/%,$(SRC)))
REPL_OBJ := $(call obj,$(filter src/repl/%,$(SRC)))
CORE_OBJ := $(call obj,$(filter-out src/host/% src/repl/%,$(SRC))) $(BUILD)/obj/gen/embedded.o \
            $(BUILD)/obj/gen/lua_docs.o $(BUILD)/obj/gen/compile_worker.o

# The built-in kernels: a fat binary a file, which all go into one object.
ifneq ($(CUDA),0)
KERNELS := $(patsubst src/cuda/kernels/%.cu,%,$(sort $(wildcard src/cuda/kernels/*.cu)))
IMAGES  := $(KERNELS:%=$(IMAGE_DIR)/%.fatbin)
PTX     := $(KERNELS:%=$(IMAGE_DIR)/%.ptx)
CORE_OBJ += $(BUILD)/obj/gen/kernels.o
endif

# What the module shares with the host: luaopen_millrace, and which backends this build has.
MODULE_OBJ := $(CORE_OBJ) $(call obj,$(wildcard src/host/module.c))

HOST   := $(BUILD)/millrace
MODULE := $(BUILD)/millrace.so
LIB    := $(BUILD)/libmillrace.a

# What connects ranks in several processes, where there is an MPI. A file of its own: the host opens it when it is asked to.
MPICC ?= $(shell command -v mpicc)
MPI   := $(if $(SAN),,$(if $(MPICC),$(BUILD)/millrace-mpi.so $(BUILD)/millrace-mpi-slot))

TEST_SRC := $(sort $(wildcard tests/c/test_*.c))
TEST_BIN := $(patsubst tests/c/%.c,$(BUILD)/tests/%,$(TEST_SRC))
ALL_TESTS := --all $(TEST_BIN)
ifneq ($(MILLRACE_GCSTRESS),)
# docs_coverage.lua reads what a run of --all records, and each of the many collections would walk over that.
ALL_TESTS := $(filter-out tests/lua/docs_coverage.lua,$(wildcard tests/*/*.lua scripts/examples/*.lua)) $(TEST_BIN)
endif

# Files carried inside the binary, as name=path.
EMBED_LUA    := $(sort $(wildcard lua/millrace/*.lua lua/millrace/*/*.lua))
# Those with usage lines and help texts, in the order of the reference page.
LUA_DOCS     := $(patsubst %,lua/millrace/%.lua,composites ordering shaping einsum nn nn/module nn/layers nn/recurrent)
LUA_DOCS     += lua/millrace/nn/parallel.lua
LUA_DOCS     += $(filter-out $(LUA_DOCS),$(EMBED_LUA))
EMBED_MODELS := $(sort $(wildcard src/virtual/models/*.model))
EMBED_DEVICE := $(sort $(shell find src/compile/device -type f))
EMBED_PAGE   := $(sort $(wildcard src/trace/page/*))
# What help() answers with. docs/api.md is written from what the binary knows anyway.
EMBED_DOCS   := $(filter-out docs/api.md docs/contributing.md docs/performance.md,$(sort $(wildcard docs/*.md)))
EMBED_EXAMPLES := $(sort $(wildcard scripts/examples/*.lua))
EMBED        := $(foreach f,$(EMBED_LUA),$(f)=$(f)) $(foreach f,$(EMBED_MODELS),models/$(notdir $(f))=$(f)) \
                $(foreach f,$(EMBED_DEVICE),$(f:src/compile/%=%)=$(f)) $(foreach f,$(EMBED_PAGE),$(f:src/%=%)=$(f)) \
                $(foreach f,$(EMBED_DOCS),$(f)=$(f)) $(foreach f,$(EMBED_EXAMPLES),$(f:scripts/%=%)=$(f))

# ---------------------------------------------------------------- building

# `make` says one line a command; `make V=1` shows the commands.
V ?= 0
ifeq ($(V),0)
Q   := @
# Without a process for each line.
say  = $(info $(SPACE) $(1)	$(2))
else
say  =
endif
quote = '$(subst ','\'',$(1))'

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: FORCE
FORCE:

.PHONY: all
all: $(HOST) $(if $(SAN),,$(MODULE)) $(MPI)  ## build the host and the Lua module (default)

# Each object waits for the stamp of the flags, which makes the folders of all objects: one process instead of one for each.
# A stamp changes only when its text does, so what depends on it is rebuilt exactly when compiler,
# flags or the list of files are no longer those of the last build.
$(BUILD)/flags.stamp: FOLDERS = $(sort $(dir $(call obj,$(SRC))))
$(BUILD)/flags.stamp: TEXT = $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LUA_LIBS) $(READLINE_LIBS) \
    $(foreach v,$(sort $(filter CFLAGS_% ROOMS_O1,$(.VARIABLES))),$(v)=$($(v)))
$(BUILD)/files.stamp: TEXT = $(SRC) $(EMBED)
%.stamp: FORCE
	$(if $(LUA_PC),,$(error Lua 5.4 development files not found: run scripts/setup))
	@mkdir -p $(@D) $(FOLDERS)
	@echo $(call quote,$(TEXT)) | cmp -s - $@ || echo $(call quote,$(TEXT)) > $@

compile = $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(CFLAGS_$(1)) -MMD -MP -c -o $@ $<

$(BUILD)/obj/src/%.o: src/%.c $(BUILD)/flags.stamp
	$(call say,CC,$<)
	$(Q)$(call compile,$(firstword $(subst /, ,$*)))

# Loops with nothing but an expression in them: of -O3 they need vectors wherever those cost less than they save, and loops of
# few turns written out. The rest takes up to three times as long to compile them, and makes none quicker. Debug information of
# them has lines only. Clang makes such vectors at -O2, and does not know how to be asked for more.
# Private, here and below: what an object depends on would inherit the flags, and the stamp of all flags would hold those of
# the object that make comes to first.
$(patsubst %,$(BUILD)/obj/src/ops/body/%.o,binary compare convert fold_extremes fold_flags fold_sums matmul optimise ternary unary): \
    private CFLAGS_ops += $(if $(VECTORISE),-O2 $(VECTORS)) $(if $(filter -g,$(CFLAGS)),-g1)
$(ROOMS_O1:%=$(BUILD)/obj/src/%/%.o): private ALL_CFLAGS += -O1

$(patsubst %,$(BUILD)/obj/src/ptx/run/%.o,global lanes lanes_v3 load local memory shared): \
    private CFLAGS_ptx += $(if $(VECTORISE),-O3 -fno-var-tracking)
$(BUILD)/obj/src/ptx/run/lanes_v3.o: private CFLAGS_ptx += $(CFLAGS_ptx_v3)
# Under sanitizers -O1 keeps the sums of a tile in memory: products take twice as long.
$(BUILD)/obj/src/ops/body/tile.o: private CFLAGS_ops += $(if $(SAN),-O2)

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c $(BUILD)/flags.stamp
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(call compile,gen)

$(IMAGE_DIR)/flags.stamp: TEXT = $(NVCC) $(NVCC_FLAGS)
$(IMAGE_DIR)/%.fatbin: src/cuda/kernels/%.cu $(IMAGE_DIR)/flags.stamp
	$(call say,NVCC,$<)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.fatbin=.d) -MT $@ -o $@ $<

# For tests/fake_cuda, which runs the kernels without a GPU.
$(IMAGE_DIR)/%.ptx: src/cuda/kernels/%.cu $(IMAGE_DIR)/flags.stamp
	$(call say,NVCC,$@)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(PTX_FLAGS) -MMD -MP -MF $@.d -MT $@ -o $@ $<

# The images as they are, each under a name that src/cuda/launch/kernels.c declares.
$(BUILD)/obj/gen/kernels.o: $(IMAGES) $(BUILD)/flags.stamp
	$(call say,EMBED,$@)
	@mkdir -p $(@D)
	@for name in $(KERNELS); do \
	    printf '.section .rodata\n.balign 64\n.globl mr_cuda_image_%s\n.hidden mr_cuda_image_%s\n' $$name $$name; \
	    printf 'mr_cuda_image_%s: .incbin "%s"\n' $$name $(IMAGE_DIR)/$$name.fatbin; \
	  done > $(BUILD)/gen/kernels.s; echo '.section .note.GNU-stack,"",%progbits' >> $(BUILD)/gen/kernels.s
	$(Q)$(CC) -c -o $@ $(BUILD)/gen/kernels.s

# The program that compiles kernels apart from us (src/compile/compiler/worker.h). Without sanitizers: it lives under limits of memory
# and of system calls that they could not.
WORKER_SRC := $(sort $(wildcard src/compile/worker/*.c)) src/compile/wire.c src/base/buffer.c src/base/number.c
$(BUILD)/compile-worker: $(WORKER_SRC) src/compile/worker/worker.h src/compile/wire.h src/base/buffer.h $(BUILD)/flags.stamp
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -Isrc $(CPPFLAGS) $(filter-out -flto=auto $(SAN_FLAGS),$(ALL_CFLAGS)) $(LDFLAGS) \
	    -s -o $@ $(WORKER_SRC) -ldl -lpthread

$(BUILD)/obj/gen/compile_worker.o: $(BUILD)/compile-worker
	$(call say,EMBED,$@)
	@mkdir -p $(@D) $(BUILD)/gen
	@printf '.section .rodata\n.globl mr_compile_worker_image, mr_compile_worker_end\n' > $(BUILD)/gen/compile_worker.s
	@printf '.hidden mr_compile_worker_image, mr_compile_worker_end\n' >> $(BUILD)/gen/compile_worker.s
	@printf 'mr_compile_worker_image: .incbin "%s"\nmr_compile_worker_end:\n' $< >> $(BUILD)/gen/compile_worker.s
	@echo '.section .note.GNU-stack,"",%progbits' >> $(BUILD)/gen/compile_worker.s
	$(Q)$(CC) -c -o $@ $(BUILD)/gen/compile_worker.s

$(BUILD)/gen/lua_docs.c: $(BUILD)/lua_docs $(BUILD)/files.stamp $(LUA_DOCS)
	$(call say,DOCS,$@)
	@mkdir -p $(@D)
	$(Q)$(BUILD)/lua_docs $@ $(LUA_DOCS)

$(BUILD)/embed $(BUILD)/lua_docs: $(BUILD)/%: scripts/%.c
	$(call say,HOSTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -std=c11 -O1 -Wall -Wextra -o $@ $<

$(GEN): $(BUILD)/embed $(BUILD)/files.stamp $(EMBED_LUA) $(EMBED_MODELS) $(EMBED_DEVICE) $(EMBED_PAGE) $(EMBED_DOCS) \
    $(EMBED_EXAMPLES)
	$(call say,EMBED,$@)
	@mkdir -p $(@D)
	$(Q)$(BUILD)/embed $@ $(EMBED)

# What each product shows to the outside: the host shows Lua (for C modules that scripts require),
# the module shows the function that `require` looks for, and neither shows our own names.
$(BUILD)/gen/host.list: Makefile
	@mkdir -p $(@D)
	@echo '{ lua_*; luaL_*; luaopen_*; };' > $@

$(BUILD)/gen/module.map: Makefile
	@mkdir -p $(@D)
	@echo '{ global: luaopen_*; local: *; };' > $@

# Every Lua function is linked in, not only those that we call: a C module may need any of them.
$(HOST): $(HOST_OBJ) $(REPL_OBJ) $(CORE_OBJ) $(BUILD)/gen/host.list $(BUILD)/files.stamp
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--dynamic-list=$(BUILD)/gen/host.list -o $@ $(filter %.o,$^) \
	    -Wl,--whole-archive $(LUA_LIBS) -Wl,--no-whole-archive $(READLINE_LIBS) $(LIBS)

# -z now: a function that is missing shows when the module is loaded, not in the middle of a script.
# -z nodelete: Lua unloads the libraries of a state that closes, and the helpers of loops and the driver's threads
# still run code of this one.
$(MODULE): $(MODULE_OBJ) $(BUILD)/gen/module.map $(BUILD)/files.stamp
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-z,now -Wl,-z,nodelete -Wl,--version-script=$(BUILD)/gen/module.map \
	    -o $@ $(filter %.o,$^) $(LIBS)

$(BUILD)/millrace-mpi.so: src/mpi/mpi.c src/collective/fabric.h $(BUILD)/flags.stamp
	$(call say,MPICC,$<)
	$(Q)OMPI_CC='$(CC)' $(MPICC) -std=c11 -D_GNU_SOURCE -Isrc -fPIC -shared -fvisibility=hidden $(filter-out -flto=auto,$(CFLAGS)) \
	    $(WARNINGS) -o $@ $<

$(BUILD)/millrace-mpi-slot: src/mpi/slot.c $(BUILD)/flags.stamp
	$(call say,LINK,$@)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(filter-out -flto=auto,$(CFLAGS)) $(WARNINGS) $(LDFLAGS) -o $@ $<

# For the C unit tests. Removed first: `ar` would keep members whose source is gone.
$(LIB): $(REPL_OBJ) $(CORE_OBJ) $(BUILD)/files.stamp
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(BUILD)/tests/%: tests/c/%.c $(LIB) $(BUILD)/flags.stamp
	$(call say,TEST,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) -o $@ $< $(LIB) \
	    $(LUA_LIBS) $(READLINE_LIBS) -lcmocka $(LIBS)

# Test programs are compiled sooner without optimisation, but for those whose own loops take most of their time. Under sanitizers
# all are optimised: some warnings of gcc come with that only.
BUSY_TESTS := compile explore_differential hazard_advice hazard_differential hazard_mutation hazard_parts hazard_why \
              model_history ops_conv ops_math ops_matmul ops_reduce order_checker order_explorer program_random \
              ptx_access_random ptx_flow ptx_fuzz ptx_random ptx_samples ptx_watch_random script
ifeq ($(SAN),)
$(filter-out $(BUSY_TESTS:%=$(BUILD)/tests/test_%),$(TEST_BIN)): private ALL_CFLAGS += -O0
endif

# These tests take the place of one function: what the interpreter tells the watch; each race that the watch finds; whether the
# processor has the wider vectors.
$(BUILD)/tests/test_ptx_access_cuda: private ALL_LDFLAGS += -Wl,--wrap=ptx_watch_access
$(BUILD)/tests/test_ptx_watch_random: private ALL_LDFLAGS += -Wl,--wrap=ptx_race_collect
$(patsubst %,$(BUILD)/tests/test_ptx_%,instructions random): private ALL_LDFLAGS += -Wl,--wrap=ptx_has_v3

# A terminal in which tests of the prompt type.
TERMINAL := $(BUILD)/terminal
$(TERMINAL): tests/host/support/terminal.c
	$(call say,TEST,$<)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -std=c11 -D_GNU_SOURCE -O1 $(WARNINGS) -o $@ $<

# Code outside of millrace, for tests: a C module of Lua. It stays loaded, as memory that it has lent is its own.
CAPSULES := $(BUILD)/capsules.so
$(CAPSULES): tests/lua/support/capsules.c $(BUILD)/flags.stamp
	$(call say,TEST,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(LUA_CFLAGS) -fPIC -shared -Wl,-z,nodelete $(CFLAGS) $(WARNINGS) $(SAN_FLAGS) -o $@ $< -lpthread

# What notes for docs_coverage.lua which functions the other tests call.
CALLS := $(BUILD)/calls.so
$(CALLS): tests/lua/coverage/calls.c $(BUILD)/flags.stamp
	$(call say,TEST,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(LUA_CFLAGS) -fPIC -shared -Wl,-z,nodelete $(CFLAGS) $(WARNINGS) $(SAN_FLAGS) -o $@ $<

# What each compiler of this machine makes of the kernels of tests/kernels, to look at: build/ptx/NAME.nvrtc.ptx.
$(BUILD)/ptx_of: tests/kernels/ptx_of.c $(LIB) $(BUILD)/flags.stamp
	$(call say,TEST,$<)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) -o $@ $< $(LIB) $(LIBS)

.PHONY: ptx
ptx: $(BUILD)/ptx_of  ## write the PTX of tests/kernels by each compiler to $(BUILD)/ptx
	@mkdir -p $(BUILD)/ptx
	@$(BUILD)/ptx_of $(BUILD)/ptx tests/kernels/*.cu

# Traces made by hand, in all formats: for tests/timelines, and to look at.
$(BUILD)/sample_trace: tests/timelines/sample.c $(LIB) $(BUILD)/flags.stamp
	$(call say,TEST,$<)
	$(Q)$(CC) $(ALL_CPPFLAGS) -I. $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) -o $@ $< $(LIB) $(LUA_LIBS) $(READLINE_LIBS) $(LIBS)

# Each operation on the GPU beside its CPU body. Nothing but glibc is needed to run it.
$(BUILD)/compare_ops: tests/gpu/compare_ops.c $(LIB) $(BUILD)/flags.stamp
	$(call say,TEST,$<)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(CFLAGS_cuda) $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) -o $@ $< $(LIB) \
	    $(LUA_LIBS) $(READLINE_LIBS) $(LIBS)

# A driver for the tests of the CUDA backend on machines without a GPU, and one that lacks a function.
ifneq ($(CUDA),0)
FAKE_CUDA := $(BUILD)/fake_cuda/libcuda.so.1 $(BUILD)/fake_cuda/incomplete.so
endif
$(BUILD)/gen/incomplete.map: Makefile
	@mkdir -p $(@D)
	@echo '{ global: *; local: cuMemPoolTrimTo; };' > $@

$(BUILD)/fake_cuda/incomplete.so: $(BUILD)/gen/incomplete.map
# The interpreter of PTX runs the kernels of its programs. Of the library only src/ptx is taken, with src/base behind it: their
# symbols are hidden, so the program's own copies stay apart.
$(BUILD)/fake_cuda/%: $(wildcard tests/fake_cuda/*.c tests/fake_cuda/*.h) src/cuda/driver.h $(LIB) $(BUILD)/flags.stamp
	$(call say,FAKE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_CPPFLAGS) $(CFLAGS_cuda) -Itests/fake_cuda -DFAKE_KERNELS='"$(abspath $(IMAGE_DIR))"' $(ALL_CFLAGS) \
	    -fvisibility=default $(ALL_LDFLAGS) \
	    $(addprefix -Wl$(COMMA)--version-script=,$(filter %.map,$^)) -o $@ $(filter %.c,$^) $(LIB) -lm -lpthread

$(BUILD)/tests/test_cuda_%: ALL_CPPFLAGS += $(CFLAGS_cuda) -Itests/fake_cuda
$(filter $(BUILD)/tests/test_cuda_%,$(TEST_BIN)): $(FAKE_CUDA)

-include $(IMAGES:.fatbin=.d) $(PTX:=.d) $(patsubst %.o,%.d,$(HOST_OBJ) $(REPL_OBJ) $(CORE_OBJ)) $(addsuffix .d,$(TEST_BIN)) $(BUILD)/compare_ops.d $(BUILD)/sample_trace.d

# ---------------------------------------------------------------- checking

# Large allocations must fail as they do without the sanitizer, by returning NULL.
# What gcc's runtime guesses of the memory for thread-local variables of libraries that are opened later may be wrong, and
# then the search for leaks crashes ("Tracer caught signal 11"): intercept_tls_get_addr=0 does not guess.
SAN_ENV := ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:intercept_tls_get_addr=0 \
           UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
           TSAN_OPTIONS=halt_on_error=1:die_after_fork=0:allocator_may_return_null=1

# What is linked for them: all C tests, or those of TESTS.
TESTS_BIN := $(if $(TESTS),$(filter $(TESTS:./%=%),$(TEST_BIN)),$(TEST_BIN))
RUN_TESTS = $(if $(SAN),$(SAN_ENV)) $(LUA) tests/run.lua --host $(HOST) --times $(TIMES) \
            $(if $(KERNEL_CACHE),--cache $(abspath $(KERNEL_CACHE)))

# A run of all tests has fewer cases of those that have many (tests/README.md). .ci/run has all of them in its step `check`.
SHORT := $(if $(SAN)$(TESTS)$(MILLRACE_LONG)$(MILLRACE_SHORT),,MILLRACE_SHORT=all)

.PHONY: check
check: all $(TESTS_BIN) $(TERMINAL) $(CAPSULES) $(CALLS) $(FAKE_CUDA) $(PTX) $(BUILD)/sample_trace  ## run the C and Lua tests (TESTS="FILE ..." for some of them)
	@$(SHORT) $(RUN_TESTS) $(or $(TESTS),$(ALL_TESTS))

# What make check runs for some seconds, with the counts that take minutes (docs/performance.md has both).
LONG_TESTS := $(patsubst %,tests/%.lua,fuzz/random_calls host/explore_examples host/learn host/mpirun) \
              $(patsubst %,tests/lua/%.lua,calibrate dist_explore dist_mismatches dist_random examples_seeds explore_leaf explore_memory \
                explore_parts explore_unseen hazard_million kernels_time kernels_waiting nccl_values ranks_explored \
                tasks_random tools_agree waits_random) \
              $(addprefix $(BUILD)/tests/test_,compile explore_apart explore_differential explore_groups explore_shared \
                hazard_differential hazard_mutation model_history program_random script)
.PHONY: check-long
check-long:  ## random tests of make check with many more programs, calls and seeds
	@MILLRACE_LONG=1 $(MAKE) --no-print-directory check TESTS="$(LONG_TESTS)"

# What another compiler may change: all but the tests of the host's own words and of pictures (docs_coverage.lua needs all).
CODE_TESTS := $(filter-out tests/lua/docs_coverage.lua tests/host/% tests/timelines/%, \
                $(wildcard tests/*/*.lua scripts/examples/*.lua)) $(TEST_BIN)
.PHONY: check-code
check-code:  ## the tests whose outcome the compiler can change, as with CC=clang BUILD=build/clang
	@$(MAKE) --no-print-directory check TESTS="$(CODE_TESTS)"

.PHONY: check-recipes
check-recipes: all $(TERMINAL) $(FAKE_CUDA) $(PTX)  ## follow the recipes of docs/contributing.md on a copy of the tree
	+@$(LUA) tests/recipes.lua $(BUILD)

.PHONY: check-san
check-san:  ## the same under AddressSanitizer and UndefinedBehaviorSanitizer, with garbage collected before each call that could collect it
	@FUZZ_CALLS=$${FUZZ_CALLS:-20000} MILLRACE_SHORT=$${MILLRACE_SHORT:-random} MILLRACE_GCSTRESS=64 \
	    $(MAKE) --no-print-directory SAN=address,undefined BUILD=$(BUILD)/san check

# What several threads do at a time, and a host whose loops use its helpers.
THREAD_TESTS := test_base_parallel test_lua_states test_op_failures
.PHONY: check-threads
check-threads:  ## the tests of what threads share, under ThreadSanitizer
	@$(MAKE) --no-print-directory SAN=thread BUILD=$(BUILD)/tsan all $(THREAD_TESTS:%=$(BUILD)/tsan/tests/%)
	@MILLRACE_THREADS=4 $(SAN_ENV) $(LUA) tests/run.lua --host $(BUILD)/tsan/millrace --times 5 \
	    $(THREAD_TESTS:%=$(BUILD)/tsan/tests/%) tests/lua/tensor_ops.lua tests/lua/softmax.lua

.PHONY: check-gpu
check-gpu: all $(if $(filter-out 0,$(CUDA)),$(BUILD)/compare_ops)  ## operations, rules and examples on a real GPU
	@$(if $(filter-out 0,$(CUDA)),,echo 'check-gpu: this build has no GPU backend (CUDA=1)' >&2; exit 1;) \
	    scripts/gpu_check.sh $(BUILD)

.PHONY: check-kernels
check-kernels: $(BUILD)/compare_ops $(FAKE_CUDA) $(PTX)  ## operations on the GPU of tests/fake_cuda, which runs the kernels' PTX
	@FAKE_CUDA_KERNELS=1 MILLRACE_LIBCUBLAS=/none MILLRACE_LIBCUDA=$(abspath $(BUILD))/fake_cuda/libcuda.so.1 \
	    $(BUILD)/compare_ops

.PHONY: bench-gpu
bench-gpu: all  ## raw CUDA C, PyTorch, CuPy and millrace side by side on a real GPU
	@scripts/gpu_check.sh $(BUILD) bench

.PHONY: lint
lint: $(if $(wildcard scripts/gen_docs.lua),$(HOST))  ## directions of includes and calls, luacheck, clang-format, cppcheck
	@scripts/lint $(HOST)

.PHONY: fmt
fmt:  ## lay out the C code by .clang-format
	$(Q)find src tests/c -name '*.[ch]' | xargs clang-format -i

.PHONY: bench
bench: $(HOST) $(TERMINAL)  ## measure
	$(Q)$(HOST) scripts/bench/run.lua

# What lua-language-server knows of millrace. A folder of its own, since editors take folders.
ANNOTATIONS := $(BUILD)/editor/millrace.lua
$(ANNOTATIONS): $(HOST) scripts/gen_docs.lua
	@mkdir -p $(@D)
	$(Q)$(HOST) scripts/gen_docs.lua --editor $@ && touch $@

.PHONY: docs
docs: $(HOST) $(ANNOTATIONS)  ## write docs/api.md and $(BUILD)/editor/millrace.lua from the documentation in the binary, and README's pictures
	$(Q)$(HOST) scripts/gen_docs.lua
	$(Q)mkdir -p docs/pictures
	$(Q)$(HOST) --device virtual scripts/gen_pictures.lua

.PHONY: try
try: $(HOST)  ## build, then run the tour: a race and its fix
	$(Q)$(HOST) scripts/examples/race_tour.lua

# ---------------------------------------------------------------- installing

BINDIR := $(DESTDIR)$(PREFIX)/bin
MODDIR := $(DESTDIR)$(PREFIX)/lib/lua/5.4
LIBDIR := $(DESTDIR)$(PREFIX)/lib/millrace
PCDIR  := $(DESTDIR)$(PREFIX)/lib/pkgconfig
DOCDIR := $(DESTDIR)$(PREFIX)/share/doc/millrace
EDITORDIR := $(DESTDIR)$(PREFIX)/share/millrace/editor

# Written at each install, since PREFIX may differ from the last one.
define PC
prefix=$(PREFIX)
bindir=$${prefix}/bin
luamoddir=$${prefix}/lib/lua/5.4

Name: millrace
Description: GPU streams, events and tensors for Lua
Version: $(VERSION)
endef
export PC

.PHONY: install
install: all $(ANNOTATIONS)  ## install the host, the module and the .pc file (PREFIX, DESTDIR)
	install -d '$(BINDIR)' '$(MODDIR)' '$(PCDIR)' '$(DOCDIR)' '$(EDITORDIR)'
	install -m 755 $(HOST) '$(BINDIR)/millrace'
	install -m 755 $(MODULE) '$(MODDIR)/millrace.so'
	$(if $(MPI),install -d '$(LIBDIR)' && install -m 755 $(MPI) '$(LIBDIR)')
	install -m 644 README.md LICENSE '$(DOCDIR)'
	install -m 644 $(ANNOTATIONS) '$(EDITORDIR)/millrace.lua'
	@echo "$$PC" > '$(PCDIR)/millrace.pc'

.PHONY: uninstall
uninstall:  ## remove what install put there
	rm -f '$(BINDIR)/millrace' '$(MODDIR)/millrace.so' '$(PCDIR)/millrace.pc'
	rm -rf '$(LIBDIR)' '$(DOCDIR)' '$(EDITORDIR)'

# A folder that runs on another Linux machine of this architecture with nothing installed.
DIST := $(BUILD)/dist/millrace-$(VERSION)-linux-$(shell uname -m)

.PHONY: dist
dist: $(IMAGES)  ## a self-contained tarball that needs only glibc
	@$(MAKE) --no-print-directory LTO=1 BUILD=$(BUILD)/release IMAGE_DIR=$(IMAGE_DIR) all \
	    $(if $(filter-out 0,$(CUDA)),$(BUILD)/release/compare_ops $(BUILD)/release/capsules.so)
	@scripts/dist $(BUILD)/release $(DIST)

.PHONY: clean
clean:  ## remove $(BUILD)
	rm -rf '$(BUILD)'

.PHONY: help
help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  \1\t\2/p' Makefile | expand -t 16
