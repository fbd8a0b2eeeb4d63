/* The editor: see edit.h.
 *
 * Readline's own signal handling would hide Ctrl-C from ours, and a handler may not jump out of it. So its
 * callback interface is used: we wait for input ourselves, and Ctrl-C ends the wait.
 *
 * An entry of several lines is one text with ends of lines in it. Where the terminal can move its cursor up, we
 * draw it by ourselves (frame.h), in place of readline's own display. Where it cannot (TERM=dumb), each line is
 * read alone. */
#include "repl/edit.h"

#if MR_HAVE_READLINE

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "base/output.h"
#include "repl/colour.h"
#include "repl/complete.h"
#include "repl/frame.h"
#include "repl/lines.h"
#include "repl/shown.h"

#define HISTORY_ENTRIES    10000
#define LONGEST_REMEMBERED (1 << 16)

static const mr_line_hooks *hooks;
static char *typed, *prefilled;
static char *instead; /* of what is shown, this was typed */
static bool is_accepted, shows_lines;

/* --- showing ---------------------------------------------------------------------------------------------- */

#define LONGEST_HINTED                                                                             \
    2000 /* bytes of the text; text further before the cursor says little about a call */

static char *above;       /* the line above the prompt; NULL: none */
static bool is_showing;   /* from the prompt until the text is finished */
static int shown_columns; /* of the terminal, when the text was shown last */

static bool has_bytes(void);

static bool more_is_typed(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return has_bytes() || poll(&input, 1, 0) > 0;
}

static char *find_hint(void) {
    size_t size = (size_t)rl_end, skipped = size > LONGEST_HINTED ? size - LONGEST_HINTED : 0;
    if (rl_point < rl_end || RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG))
        return NULL;
    return hooks->hint(hooks->context, rl_line_buffer + skipped, size - skipped);
}

static void mark_brackets(unsigned char *colours) {
    size_t size = (size_t)rl_end, at = (size_t)rl_point;
    size_t other = mr_colour_partner(rl_line_buffer, size, colours, at);
    if (other == size && at) other = mr_colour_partner(rl_line_buffer, size, colours, --at);
    if (other == size) return;
    colours[at] = colours[other] = MR_COLOUR_BRACKET;
}

static mr_frame frame_of_line(void) {
    mr_frame frame = {.above = above,
                      .prompt = rl_display_prompt ? rl_display_prompt : "",
                      .text = rl_line_buffer,
                      .size = (size_t)rl_end,
                      .point = (size_t)rl_point};
    rl_reset_screen_size(); /* a key may come before the signal of a new size */
    rl_get_screen_size(&frame.rows, &frame.columns);
    if (frame.columns != shown_columns) mr_frame_resized(frame.columns);
    shown_columns = frame.columns;
    return frame;
}

/* Without memory the line has no colours. */
static unsigned char *find_colours(void) {
    unsigned char *colours = mr_output_has_colour(stdout) ? calloc(1, (size_t)rl_end + 1) : NULL;
    if (colours && mr_line_shows(MR_LINE_COLOURS))
        mr_colour_find(rl_line_buffer, (size_t)rl_end, colours);
    return colours;
}

static void draw(void) {
    mr_frame frame = frame_of_line();
    unsigned char *colours = find_colours();
    char *hint = colours && mr_line_shows(MR_LINE_HINTS) ? find_hint() : NULL;
    if (colours && mr_line_shows(MR_LINE_COLOURS)) mark_brackets(colours);
    frame.colours = colours;
    frame.hint = hint;
    mr_frame_draw(&frame);
    free(colours);
    free(hint);
}

/* Asks for the line above. Messages that come meanwhile go above all that is shown. */
static void ask_above(void) {
    char *message = NULL, *before = above;
    if (!shows_lines) return;
    above = hooks->above(hooks->context, &message);
    if (message) {
        mr_frame_erase();
        fprintf(stderr, "%s\n", message);
    }
    bool is_same =
        mr_frame_is_shown() && (!above == !before) && (!above || strcmp(above, before) == 0);
    if (is_showing && !is_same) draw();
    free(message);
    free(before);
}

/* In place of rl_redisplay. Text that is typed ahead is shown with the text after it. */
static void redisplay(void) {
    if (is_showing && !more_is_typed()) draw();
}

/* The whole text stays, and the cursor is below it. */
static void finish_display(void) {
    mr_frame frame = frame_of_line();
    unsigned char *colours = find_colours();
    frame.colours = colours;
    if (shows_lines) mr_frame_finish(&frame);
    is_showing = false;
    free(colours);
}

static int clear_screen(int count, int key) {
    (void)count, (void)key;
    mr_frame_erase();
    fputs("\033[H\033[2J", stdout);
    (*rl_redisplay_function)();
    return 0;
}

/* --- waiting --------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t is_resized;

static void on_resize(int signal_number) {
    (void)signal_number;
    is_resized = 1;
}

static void resize(void) {
    if (!shows_lines) rl_resize_terminal();
    else if (is_showing) draw();
}

static sigset_t outside; /* the signals that come while the editor waits, and at no other time */

#define POLL_NS 200000000 /* the interval between queries of the hardware's state */

/* True: there is some. */
static bool wait_for_input(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    const struct timespec limit = {.tv_nsec = POLL_NS};
    int ready = ppoll(&input, 1, hooks->polls ? &limit : NULL, &outside);
    if (ready == 0) ask_above();
    if (is_resized) {
        is_resized = 0;
        resize();
    }
    return ready > 0;
}

/* --- pasting --------------------------------------------------------------------------------------------- */

#if RL_READLINE_VERSION >= 0x0700
#define KNOWS_PASTE 1
#else
#define KNOWS_PASTE 0
#endif

#if KNOWS_PASTE

/* Readline redraws the whole edited text at each key, so a longer text is taken without editing. */
#define MOST_EDITED (1 << 16)

static const char paste_end[] = "\033[201~";
static mr_buffer pasted; /* and, from `taken` on, the input after it */
static size_t taken;

/* The bytes that readline reads next. */
static int next_byte(FILE *stream) {
    if (taken < pasted.size) return (unsigned char)pasted.data[taken++];
    return rl_getc(stream);
}

static bool has_bytes(void) {
    return taken < pasted.size;
}

/* Until the mark at its end; false: Ctrl-C came, or nothing more does. */
static bool read_paste(size_t *out_size) {
    static char piece[1 << 16];
    char *end = NULL;
    while (!end) {
        size_t seen = pasted.size < sizeof paste_end ? 0 : pasted.size - sizeof paste_end;
        if (pasted.data)
            end = memmem(pasted.data + seen, pasted.size - seen, paste_end, sizeof paste_end - 1);
        if (end) break;
        if (!wait_for_input()) return false;
        ssize_t size = read(STDIN_FILENO, piece, sizeof piece);
        if (size <= 0 && errno != EINTR) return false;
        if (size > 0) mr_buffer_add(&pasted, piece, (size_t)size);
        if (pasted.failed) return false;
    }
    *out_size = (size_t)(end - pasted.data);
    return true;
}

/* Terminals send the end of a line as they send Enter. */
static void fix_line_ends(char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\r') text[i] = '\n';
}

/* Puts the text where the cursor is, and ends the input. Only its size is shown. */
static void accept_pasted(const char *text, size_t size) {
    char shown[64];
    mr_buffer whole = {0};
    mr_buffer_add(&whole, rl_line_buffer, (size_t)rl_point);
    mr_buffer_add(&whole, text, size);
    mr_buffer_puts(&whole, rl_line_buffer + rl_point);
    snprintf(shown, sizeof shown, "(%zu bytes were pasted)", size);
    rl_replace_line(shown, 1);
    rl_point = rl_end;
    instead = whole.data; /* NULL without memory: then Lua finds the text that is shown */
    (*rl_redisplay_function)();
    rl_newline(1, '\n');
}

static int on_paste(int count, int key) {
    size_t size;
    (void)count, (void)key;
    mr_buffer_free(&pasted);
    taken = 0;
    if (!read_paste(&size)) {
        mr_buffer_free(&pasted);
        return 0;
    }
    taken = size + sizeof paste_end - 1;
    fix_line_ends(pasted.data, size);
    char *text = strndup(pasted.data, size);
    if (text && size <= MOST_EDITED) rl_insert_text(text);
    else if (text) accept_pasted(text, strlen(text));
    free(text);
    return 0;
}

#else

static bool has_bytes(void) {
    return false;
}

#endif

/* While nothing of the line is drawn. A signal is kept for the loop below, which then ends the line. */
static int read_key(void) {
    bool was_showing = is_showing;
    bool is_ended = false;
    is_showing = false;
    while (!is_ended && !has_bytes() && !wait_for_input()) is_ended = hooks->interrupted();
    if (is_ended) raise(hooks->ended() ? SIGTERM : SIGINT);
    int key = is_ended ? 'n' : rl_read_key();
    is_showing = was_showing;
    return key;
}

/* Enter: another line, as long as the text is not an entry. */
static int accept_entry(int count, int key) {
    if (shows_lines && hooks->is_incomplete(hooks->context, rl_line_buffer, (size_t)rl_end))
        return mr_lines_new(count, key);
    rl_point = rl_end;
    if (shows_lines) mr_lines_finish();
    return rl_newline(count, key);
}

/* --- keys ------------------------------------------------------------------------------------------------ */

/* A key that the user's inputrc has given another meaning keeps it. */
static void bind_unless_changed(const char *keys, rl_command_func_t *usual,
                                rl_command_func_t *ours) {
    int type;
    rl_command_func_t *bound = rl_function_of_keyseq(keys, NULL, &type);
    if (!bound || (type == ISFUNC && bound == usual)) rl_bind_keyseq(keys, ours);
}

static int bind_keys(void) {
    const char *up = rl_get_termcap("up");
    shows_lines = up && *up;
    bind_unless_changed("\r", rl_newline, accept_entry);
    bind_unless_changed("\n", rl_newline, accept_entry);
    bind_unless_changed("\t", rl_complete, mr_complete_or_indent);
#if KNOWS_PASTE
    bind_unless_changed("\033[200~", rl_bracketed_paste_begin, on_paste);
    rl_getc_function = next_byte;
#endif
    if (!shows_lines) return 0;
    rl_redisplay_function = redisplay;
    bind_unless_changed("\014", rl_clear_screen, clear_screen);      /* Ctrl-L */
    bind_unless_changed("\033\r", rl_vi_editing_mode, mr_lines_new); /* Alt-Enter */
    bind_unless_changed("\033\n", rl_vi_editing_mode, mr_lines_new);
    bind_unless_changed("\033[A", rl_get_previous_history, mr_lines_up);
    bind_unless_changed("\033OA", rl_get_previous_history, mr_lines_up);
    bind_unless_changed("\033[B", rl_get_next_history, mr_lines_down);
    bind_unless_changed("\033OB", rl_get_next_history, mr_lines_down);
    bind_unless_changed("\020", rl_get_previous_history, mr_lines_up); /* Ctrl-P */
    bind_unless_changed("\016", rl_get_next_history, mr_lines_down);   /* Ctrl-N */
    bind_unless_changed("\001", rl_beg_of_line, mr_lines_home);        /* Ctrl-A */
    bind_unless_changed("\005", rl_end_of_line, mr_lines_end);         /* Ctrl-E */
    bind_unless_changed("\033[H", rl_beg_of_line, mr_lines_home);
    bind_unless_changed("\033[F", rl_end_of_line, mr_lines_end);
    return 0;
}

static int insert_prefilled(void) {
    if (prefilled) {
        rl_insert_text(prefilled);
        (*rl_redisplay_function)(); /* the prompt is there already */
    }
    free(prefilled);
    prefilled = NULL;
    return 0;
}

#if RL_READLINE_VERSION >= 0x0802
/* Readline ends the line of Ctrl-D, and then each later line, too, since only its other interface clears the
 * mark. We end that line ourselves. */
static void leave_terminal(void) {
    rl_eof_found = 0;
    rl_deprep_terminal();
}
#endif

void mr_edit_open(const mr_line_hooks *wanted) {
    hooks = wanted;
    rl_readline_name = "millrace";
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_change_environment = 0; /* COLUMNS keeps the user's value */
#if RL_READLINE_VERSION >= 0x0802
    rl_deprep_term_function = leave_terminal;
#endif
    mr_complete_open(hooks, read_key);
    rl_pre_input_hook = insert_prefilled;
    using_history();
    stifle_history(HISTORY_ENTRIES);
    rl_initialize(); /* reads inputrc */
    bind_keys();
}

/* --- reading --------------------------------------------------------------------------------------------- */

static void on_line(char *line) {
    if (instead) free(line);
    typed = instead ? instead : line;
    instead = NULL;
    is_accepted = true;
    finish_display();
    rl_callback_handler_remove();
}

static void abandon_line(void) {
    finish_display();
    rl_free_line_state();
    rl_callback_sigcleanup();
    rl_callback_handler_remove();
    if (!shows_lines) putchar('\n');
    fflush(stdout);
}

static bool was_interrupted(void) {
    return hooks->interrupted();
}

mr_line_status mr_edit_read(const char *prompt, mr_buffer *out_line) {
    sigset_t waited_for;
    struct sigaction resize, old_resize;
    mr_line_status status = MR_LINE_READ;
    out_line->size = 0;
    typed = NULL;
    is_accepted = false;
    memset(&resize, 0, sizeof resize);
    resize.sa_handler = on_resize;
    sigaction(SIGWINCH, &resize, &old_resize);
    /* These come only within ppoll: not between the question and the wait. */
    sigemptyset(&waited_for);
    sigaddset(&waited_for, SIGINT);
    sigaddset(&waited_for, SIGTERM);
    sigaddset(&waited_for, SIGHUP);
    sigaddset(&waited_for, SIGWINCH);
    sigprocmask(SIG_BLOCK, &waited_for, &outside);
    rl_reset_screen_size(); /* it may have changed while an entry ran */
    mr_frame_begin();
    ask_above();
    is_showing = true;
    rl_callback_handler_install(prompt, on_line);
    while (!is_accepted) {
        if (has_bytes() || wait_for_input()) {
            rl_callback_read_char();
        } else if (was_interrupted()) {
            abandon_line();
            status = hooks->ended() ? MR_LINE_END : MR_LINE_INTERRUPTED;
            break;
        }
    }
    sigprocmask(SIG_SETMASK, &outside, NULL);
    sigaction(SIGWINCH, &old_resize, NULL);
    if (status != MR_LINE_READ) return status;
    if (!typed) { /* Ctrl-D */
        if (!shows_lines) putchar('\n');
        return MR_LINE_END;
    }
    mr_buffer_puts(out_line, typed);
    free(typed);
    return MR_LINE_READ;
}

void mr_edit_prefill(const char *text) {
    free(prefilled);
    prefilled = strdup(text);
}

bool mr_edit_remember(const char *entry) {
    HIST_ENTRY *last = history_length > 0 ? history_get(history_base + history_length - 1) : NULL;
    if (strlen(entry) > LONGEST_REMEMBERED || (last && strcmp(last->line, entry) == 0))
        return false;
    add_history(entry);
    return true;
}

#else

/* Never called: line.c reads lines itself. */
void mr_edit_open(const mr_line_hooks *wanted) {
    (void)wanted;
}

mr_line_status mr_edit_read(const char *prompt, mr_buffer *out_line) {
    (void)prompt, (void)out_line;
    return MR_LINE_END;
}

void mr_edit_prefill(const char *text) {
    (void)text;
}

bool mr_edit_remember(const char *entry) {
    (void)entry;
    return false;
}

#endif
