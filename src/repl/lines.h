/* The text that readline edits, as several lines: the keys that go from line to line, and new lines. */
#ifndef MR_REPL_LINES_H
#define MR_REPL_LINES_H

/* Where the line begins that byte `at` of the text is in. */
int mr_lines_start(int at);

/* Commands of readline, for keys. Up and down: within the text, as far as there is a line; else to the entry before or
 * after. A new line is as far in as the line above, and further in a block; in a long string it is not indented. */
int mr_lines_up(int count, int key);
int mr_lines_down(int count, int key);
int mr_lines_home(int count, int key);
int mr_lines_end(int count, int key);
int mr_lines_new(int count, int key);

/* Called when the text is finished: moves an `end` in its last line back under its block, unless the user has moved
 * it. */
void mr_lines_finish(void);

#endif
