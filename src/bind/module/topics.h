/* Topics of help besides names: ordering rules, examples, words that the pages of docs/ explain. */
#ifndef MR_BIND_MODULE_TOPICS_H
#define MR_BIND_MODULE_TOPICS_H

#include <lua.h>
#include <stdbool.h>

/* Pushes a list of the names that have a page. */
void mr_topics_push_known(lua_State *L);

/* Pushes a table with the number of times that the examples use each name. */
void mr_topics_push_uses(lua_State *L);

/* Pushes the text about the topic at that index, in lines of that width; false, and nothing: there is none, or it is no
 * text. */
bool mr_topics_push_page(lua_State *L, int topic, int width);

/* If a page has the name at that index, appends a sentence about it to the text on top of the stack. */
void mr_topics_add_same_name(lua_State *L, int name);

#endif
