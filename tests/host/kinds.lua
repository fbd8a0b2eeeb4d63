-- scripts/kinds.lua finds readers of commands that would not be told of a new kind, and tests for one of several kinds.
-- `make lint` says what it finds in this tree.
-- not replayed: it runs a script of the developers'
local lu = require "luaunit"

TestKinds = {}

local root

local function write(path, text)
  os.execute(("mkdir -p '%s/%s'"):format(root, path:match "^(.*)/"))
  local file <close> = assert(io.open(root .. "/" .. path, "w"))
  file:write(text)
end

-- The output for a file with this code.
local function said(code)
  write("src/reader/reader.c", '#include "explore/order.h"\n#include "model/command.h"\n' .. code)
  local pipe <close> = io.popen(("lua5.4 scripts/kinds.lua '%s/src' '%s/build' 2>&1"):format(root, root))
  return (pipe:read("a"):gsub(root:gsub("%p", "%%%0") .. "/", ""))
end

local function accepts(code, switches)
  lu.assertEquals(said(code), ("%d switches over kinds in %d files name each kind\n"):format(switches,
    math.min(switches, 1)))
end

local function finds(code, line, reason)
  lu.assertStrContains(said(code), ("src/reader/reader.c:%d: %s"):format(line, reason))
end

function TestKinds.setUp()
  root = os.tmpname()
  os.remove(root)
  write("build/flags.stamp", "cc -DMR_HAVE_CUDA=0 -Isrc\n")
  write("src/model/command.h", [[
#define MR_SUBMITTED_LIST(X) \
    X(OP, "op", SUBMITTED, PLACE, OP) X(COPY, "copy", SUBMITTED, PLACE, COPY)
#define MR_HOST_LIST(X) \
    X(SYNC, "sync", NONE, WAIT, NOTHING)
#define MR_OBJECT_LIST(X) \
    X(CLOSE, "close", NONE, ACCOUNT, NOTHING)
#define MR_MACHINE_LIST(X) \
    X(SEED, "seed", NONE, ACCOUNT, NOTHING)
#define MR_ACCOUNT_LIST(X) MR_OBJECT_LIST(X) MR_MACHINE_LIST(X)
#define MR_COMMAND_LIST(X) MR_SUBMITTED_LIST(X) MR_HOST_LIST(X) MR_ACCOUNT_LIST(X)
typedef enum {
#define X(name, ...) MR_COMMAND_##name,
    MR_COMMAND_LIST(X)
#undef X
} mr_command_id;
#define MR_COMMAND_CASE(name, ...) case MR_COMMAND_##name:
]])
  write("src/explore/order.h", [[
typedef enum {
    ITEM_PLAIN,
    ITEM_QUERY,
} item_class;
]])
end

function TestKinds.tearDown() os.execute(("rm -r '%s'"):format(root)) end

-- A function that switches over a `kind` of this type.
local function reader(cases, type)
  local head = ("int read(%s kind)"):format(type)
  return ("%s;\n%s {\n    switch (kind) {\n%s    }\n    return 0;\n}\n"):format(head, head, cases)
end

local EACH = "    case MR_COMMAND_OP:\n    case MR_COMMAND_COPY: return 1;\n    case MR_COMMAND_SYNC: return 2;\n"

function TestKinds.test_a_switch_names_each_kind()
  accepts(reader(EACH .. "    case MR_COMMAND_CLOSE: case MR_COMMAND_SEED: break;\n", "mr_command_id"), 1)
  accepts(reader(EACH .. "    MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;\n", "mr_command_id"), 1)
  accepts(reader("    MR_COMMAND_LIST(MR_COMMAND_CASE) break;\n", "mr_command_id"), 0)
  accepts(reader("    case ITEM_PLAIN: case ITEM_QUERY: break;\n", "item_class"), 1)
end

function TestKinds.test_a_default_hides_a_new_kind()
  local hidden = reader("    case MR_COMMAND_OP: return 1;\n    default: break;\n", "mr_command_id")
  for _, list in ipairs { "SUBMITTED", "HOST", "OBJECT", "MACHINE" } do
    finds(hidden, 5, ("the compiler does not tell this switch of a new kind (MR_COMMAND_NEW_%s)"):format(list))
  end
  local listed = reader(EACH .. "    MR_OBJECT_LIST(MR_COMMAND_CASE) break;\n    default: break;\n", "mr_command_id")
  finds(listed, 5, "the compiler does not tell this switch of a new kind (MR_COMMAND_NEW_MACHINE)")
  lu.assertNotStrContains(said(listed), "NEW_OBJECT")
  finds(reader("    case ITEM_PLAIN: return 1;\n    default: break;\n", "item_class"), 5,
    "the compiler does not tell this switch of a new kind (ITEM_NEW)")
end

function TestKinds.test_a_plain_integer_hides_a_new_kind()
  finds(reader(EACH .. "    MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;\n", "unsigned"), 5,
    "the compiler does not tell this switch of a new kind (MR_COMMAND_NEW_SUBMITTED)")
end

function TestKinds.test_a_switch_inside_another_is_found()
  local inner = "    case MR_COMMAND_OP:\n        switch (kind) {\n        case MR_COMMAND_COPY: return 3;\n" ..
    "        default: return 4;\n        }\n"
  finds(reader(inner .. "    case MR_COMMAND_COPY: case MR_COMMAND_SYNC: MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;\n",
    "mr_command_id"), 7, "the compiler does not tell this switch of a new kind (MR_COMMAND_NEW_HOST)")
end

local function test_of(statement)
  return ("int test(mr_command_id kind, mr_command_id other);\n" ..
    "int test(mr_command_id kind, mr_command_id other) {\n    %s\n    return other == kind;\n}\n"):format(statement)
end

function TestKinds.test_one_kind_may_be_asked_for()
  accepts(test_of "return kind == MR_COMMAND_OP;", 0)
  accepts(test_of "if (kind == MR_COMMAND_OP || other == MR_COMMAND_COPY) return 1;", 0)
  accepts(test_of "if (kind == MR_COMMAND_OP) return 1;\n    if (kind == MR_COMMAND_COPY) return 2;", 0)
  accepts(test_of "return 1; /* kind == MR_COMMAND_OP || kind == MR_COMMAND_COPY */", 0)
end

function TestKinds.test_one_of_several_kinds_is_refused()
  local several = "kind is one of several kinds"
  finds(test_of "return kind == MR_COMMAND_OP || kind == MR_COMMAND_COPY;", 5, several)
  finds(test_of "return kind != MR_COMMAND_OP && kind != MR_COMMAND_COPY;", 5, several)
  finds(test_of "return kind == MR_COMMAND_OP ||\n        other ||\n        kind == MR_COMMAND_COPY;", 5, several)
  finds(test_of "if (kind == MR_COMMAND_OP) return 1;\n    else if (kind == MR_COMMAND_COPY) return 2;", 6, several)
end

os.exit(lu.LuaUnit.run())
