/* The checker's reports and totals as Lua tables. */
#ifndef MR_BIND_HAZARD_TABLES_H
#define MR_BIND_HAZARD_TABLES_H

#include "bind/bind.h"
#include "hazard/hazard.h"

/* Appends copies of the reports from index `first` on to the buffer, of advice or of the others. Nothing runs meanwhile
 * that could change them. */
void mr_copy_reports(const mr_hazard *hazard, size_t first, size_t count, bool advice,
                     mr_buffer *copies);

/* Pushes the list of the reports that the buffer at the top of the stack has copies of. */
void mr_push_reports(lua_State *L);

void mr_push_totals(lua_State *L, const mr_hazard_totals *totals);

#endif
