/* mr.sync_debug: names the calls that make the host wait. */
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "base/text.h"
#include "bind/hazard/hazard.h"
#include "bind/open.h"
#include "trace/record/sync_debug.h"

static const char box; /* its address is a registry key */

static const char *const modes[] = {
    [MR_SYNC_OFF] = "off", [MR_SYNC_WARN] = "warn", [MR_SYNC_ERROR] = "error", NULL};

static void tell(void *context, const mr_hidden_wait *wait) {
    mr_buffer text = {0};
    const mr_site where = mr_hazard_shown(context, wait->where);
    mr_text_put(&text, where.file);
    mr_buffer_printf(&text, ":%d: ", where.line);
    mr_text_put(&text, wait->name);
    if (wait->waited)
        mr_buffer_printf(&text, " made the host wait for the device for %.3f ms",
                         (double)wait->waited * 1e-6);
    else mr_buffer_puts(&text, " can make the host wait for the device");
    mr_buffer_printf(&text, ": %s. Instead: %s\n", wait->because, wait->instead);
    fflush(stdout);
    if (text.data) mr_output_write(stderr, text.data, text.size);
    mr_buffer_free(&text);
}

static mr_sync_debug *debug_of(lua_State *L) {
    return *(mr_sync_debug **)mr_under_key(L, &box);
}

MR_FUNCTION(sync_debug, "sync_debug", "mr.sync_debug([mode: string]) -> before: string",
            "Names calls that make the host wait for a device although they are not called "
            "synchronize: item(), print(t), copies that block or are of pageable memory, "
            "t:free{sync=true}. \"warn\": a line on standard error for each place of the script, "
            "with the time that the host waited there; \"error\": the call raises before it waits; "
            "\"off\" (costs nothing). Like torch.cuda.set_sync_debug_mode. Returns the previous "
            "mode.") {
    mr_set_context(L);
    mr_sync_debug *debug = debug_of(L);
    lua_settop(L, 1);
    lua_pushstring(L, modes[mr_sync_debug_mode(debug)]);
    if (lua_isnil(L, 1)) return 1;
    const char *text = luaL_checkstring(L, 1);
    for (int i = 0; modes[i]; i++) {
        if (strcmp(modes[i], text) != 0) continue;
        mr_raise(L, mr_sync_debug_set(debug, (mr_sync_mode)i));
        return 1;
    }
    return mr_misuse(L, "sync_debug: no mode \"%s\"; there are \"off\", \"warn\", \"error\"", text);
}

static int debug_gc(lua_State *L) {
    mr_sync_debug **debug = lua_touserdata(L, 1);
    mr_sync_debug_destroy(*debug);
    *debug = NULL;
    return 0;
}

static const mr_function *const functions[] = {&sync_debug_function, NULL};

const mr_class mr_sync_debug_class = {"mr", "Hidden waits of the host.", functions, NULL, NULL};

/* As for the checker, which names the lines, the finalizer comes before the machine's; and before the checker's. */
void mr_open_sync_debug(lua_State *L) {
    mr_sync_debug **debug = mr_push_owner(L, sizeof *debug, debug_gc);
    mr_raise(L, mr_sync_debug_create(mr_bind_machine(L), tell, mr_bind_hazard(L), debug));
    lua_rawsetp(L, LUA_REGISTRYINDEX, &box);
    mr_table_open(L, &mr_sync_debug_class);
}
