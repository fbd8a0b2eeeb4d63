/* A terminal for tests: runs a program on a pseudo-terminal, types what a list of steps says, and
 * keeps the screen that the program's output makes. It knows the codes of xterm that readline and
 * less send.
 *
 *     terminal ROWS COLUMNS STEPS PROGRAM [ARGUMENTS]
 *
 * STEPS is a file with a step on each line; in texts, \n, \r, \t, \e, \xHH and \\ are understood:
 *     wait TEXT       until the screen shows TEXT
 *     gone TEXT       until the screen does not show it any more
 *     send TEXT       types it
 *     enter TEXT      clears the screen, types TEXT, and waits until the cursor stands behind a prompt below it
 *     paste PATH      types the contents of a file in the brackets of a paste, and \r
 *     size R C        changes the size of the terminal
 *     shot            prints the screen, each line behind "|", and where the cursor is
 *     key TEXT SHOWN  types TEXT and prints after how many milliseconds the screen shows SHOWN ("key 1.25")
 *     count TEXT N    prints how often the program has written TEXT so far ("count 3"), once it is N times
 *     rows TEXT N     until N rows of the screen show TEXT
 *     signal NUMBER   sends a signal to the program
 *     exit            waits for the end of the program and prints its status ("exit 0")
 * Ends with 1, the step, and the screen, if something is not shown within the time of MILLRACE_TERMINAL_SECONDS (20).
 *
 * Written for the tests of the prompt: not a complete emulator. What it does not know it skips. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define MOST_ROWS    200
#define MOST_COLUMNS 400
#define CELL         8 /* bytes of one character */

typedef struct {
    int rows, columns, row, column;
    bool must_wrap; /* the last column is full: the next character goes to the next line */
    char cells[MOST_ROWS][MOST_COLUMNS][CELL];
    int parameters[16], parameter_count;
    enum { TEXT, ESCAPE, CONTROL, OTHER } state;
    char partial[CELL]; /* of a character of several bytes */
    int partial_size, partial_wanted;
} screen;

static screen s;
static int terminal;
static pid_t child;
static bool is_closed;
static char *written; /* all that the program wrote */
static size_t written_size;

/* ---- the screen */

static void clear_cells(int row, int from, int to) {
    for (int i = from; i < to && i < MOST_COLUMNS; i++) strcpy(s.cells[row][i], " ");
}

static void scroll(void) {
    memmove(s.cells[0], s.cells[1], sizeof s.cells[0] * (size_t)(s.rows - 1));
    clear_cells(s.rows - 1, 0, MOST_COLUMNS);
}

static void line_feed(void) {
    if (s.row == s.rows - 1) scroll();
    else s.row++;
}

static unsigned code_of(const char *character) {
    const unsigned char *c = (const unsigned char *)character;
    if (*c < 0xC0) return *c;
    unsigned code = *c & (*c >= 0xF0 ? 7 : *c >= 0xE0 ? 15 : 31);
    while (*++c) code = code << 6 | (*c & 63);
    return code;
}

/* The ranges that the tests use. */
static int columns_of(unsigned code) {
    if ((code >= 0x300 && code < 0x370) || (code >= 0x200B && code < 0x2010)) return 0;
    return (code >= 0x1100 && code < 0x1160) || (code >= 0x2E80 && code < 0xA4D0) ||
                   (code >= 0xAC00 && code < 0xD7A4) || (code >= 0xFF00 && code < 0xFF61) ||
                   (code >= 0x1F300 && code < 0x1FB00)
               ? 2
               : 1;
}

static void put(const char *character) {
    int columns = columns_of(code_of(character));
    if (!columns) return;
    if (s.must_wrap || s.column + columns > s.columns) {
        s.column = 0;
        line_feed();
        s.must_wrap = false;
    }
    snprintf(s.cells[s.row][s.column], CELL, "%s", character);
    if (columns == 2) s.cells[s.row][s.column + 1][0] = '\0';
    s.column += columns;
    if (s.column < s.columns) return;
    s.column = s.columns - 1;
    s.must_wrap = true;
}

static int parameter(int index, int otherwise) {
    return index < s.parameter_count && s.parameters[index] ? s.parameters[index] : otherwise;
}

static int within(int value, int least, int most) {
    return value < least ? least : value > most ? most : value;
}

static void move(int row, int column) {
    s.row = within(row, 0, s.rows - 1);
    s.column = within(column, 0, s.columns - 1);
    s.must_wrap = false;
}

static void erase_display(int what) {
    if (what == 2 || what == 1)
        for (int i = 0; i < (what == 2 ? s.rows : s.row); i++) clear_cells(i, 0, MOST_COLUMNS);
    if (what == 0) {
        clear_cells(s.row, s.column, MOST_COLUMNS);
        for (int i = s.row + 1; i < s.rows; i++) clear_cells(i, 0, MOST_COLUMNS);
    }
}

static void shift_cells(int count, bool insert) {
    size_t rest = (size_t)(MOST_COLUMNS - s.column - count) * CELL;
    if (insert) {
        memmove(s.cells[s.row][s.column + count], s.cells[s.row][s.column], rest);
        clear_cells(s.row, s.column, s.column + count);
    } else {
        memmove(s.cells[s.row][s.column], s.cells[s.row][s.column + count], rest);
        clear_cells(s.row, MOST_COLUMNS - count, MOST_COLUMNS);
    }
}

static void control(char code) {
    int n = parameter(0, 1);
    switch (code) {
    case 'A': move(s.row - n, s.column); break;
    case 'B': move(s.row + n, s.column); break;
    case 'C': move(s.row, s.column + n); break;
    case 'D': move(s.row, s.column - n); break;
    case 'G': move(s.row, n - 1); break;
    case 'd': move(n - 1, s.column); break;
    case 'H':
    case 'f': move(n - 1, parameter(1, 1) - 1); break;
    case 'J': erase_display(parameter(0, 0)); break;
    case 'K':
        if (parameter(0, 0) == 0) clear_cells(s.row, s.column, MOST_COLUMNS);
        else clear_cells(s.row, 0, parameter(0, 0) == 1 ? s.column + 1 : MOST_COLUMNS);
        break;
    case '@': shift_cells(within(n, 0, MOST_COLUMNS - s.column), true); break;
    case 'P': shift_cells(within(n, 0, MOST_COLUMNS - s.column), false); break;
    default: break; /* colours, modes */
    }
}

static void plain(unsigned char c) {
    if (c == '\r') move(s.row, 0);
    else if (c == '\n') line_feed(), s.must_wrap = false;
    else if (c == '\b') move(s.row, s.column - 1);
    else if (c == '\t') move(s.row, (s.column / 8 + 1) * 8);
    else if (c >= 0xC0) {
        s.partial[0] = (char)c;
        s.partial_size = 1;
        s.partial_wanted = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    } else if (c >= 0x80) {
        if (s.partial_size && s.partial_size < s.partial_wanted)
            s.partial[s.partial_size++] = (char)c;
        if (s.partial_size && s.partial_size == s.partial_wanted) {
            s.partial[s.partial_size] = '\0';
            put(s.partial);
            s.partial_size = 0;
        }
    } else if (c >= ' ') {
        char text[2] = {(char)c, '\0'};
        put(text);
    }
}

static void take(unsigned char c) {
    switch (s.state) {
    case TEXT:
        if (c == '\033') s.state = ESCAPE;
        else plain(c);
        break;
    case ESCAPE:
        s.state = c == '[' ? CONTROL : strchr("()", c) ? OTHER : TEXT;
        memset(s.parameters, 0, sizeof s.parameters);
        s.parameter_count = 1;
        break;
    case OTHER: s.state = TEXT; break; /* the name of a character set */
    case CONTROL:
        if (c >= '0' && c <= '9') {
            int *value = &s.parameters[s.parameter_count - 1];
            *value = within(*value * 10 + (c - '0'), 0, 10000);
        } else if (c == ';') {
            if (s.parameter_count < 16) s.parameter_count++;
        } else if (c >= '@') {
            control((char)c);
            s.state = TEXT;
        }
    }
}

/* The line without the spaces at its end. */
static void line_text(int row, char *out) {
    size_t size = 0;
    for (int i = 0; i < s.columns; i++) {
        size_t length = strlen(s.cells[row][i]);
        memcpy(out + size, s.cells[row][i], length);
        size += length;
    }
    while (size && out[size - 1] == ' ') size--;
    out[size] = '\0';
}

static void shot(void) {
    char line[MOST_COLUMNS * CELL];
    for (int i = 0; i < s.rows; i++) {
        line_text(i, line);
        printf("|%s\n", line);
    }
    printf("cursor %d %d\n", s.row + 1, s.column + 1);
}

static bool shows(const char *text) {
    char line[MOST_COLUMNS * CELL];
    for (int i = 0; i < s.rows; i++) {
        line_text(i, line);
        if (strstr(line, text)) return true;
    }
    return false;
}

/* ---- the program */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reads what there is within so many milliseconds. */
static void listen_for(int milliseconds) {
    static char piece[1 << 16];
    struct pollfd input = {.fd = terminal, .events = POLLIN};
    if (is_closed || poll(&input, 1, milliseconds) <= 0) return;
    ssize_t size = read(terminal, piece, sizeof piece);
    if (size <= 0) {
        is_closed = true; /* EIO: nobody has the other side open */
        return;
    }
    written = realloc(written, written_size + (size_t)size + 1);
    if (!written) abort();
    memcpy(written + written_size, piece, (size_t)size);
    written_size += (size_t)size;
    written[written_size] = '\0';
    for (ssize_t i = 0; i < size; i++) take((unsigned char)piece[i]);
}

/* Output has to be read meanwhile: a program that waits for its terminal reads no input. */
static void type(const char *text, size_t size) {
    double until = now() + 60;
    while (size && now() < until && !is_closed) {
        struct pollfd output = {.fd = terminal, .events = POLLOUT};
        ssize_t done =
            poll(&output, 1, 0) > 0 ? write(terminal, text, size > 1024 ? 1024 : size) : 0;
        if (done > 0) {
            text += done;
            size -= (size_t)done;
        }
        listen_for(done > 0 ? 0 : 1);
    }
}

static void set_size(int rows, int columns) {
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    s.rows = within(rows, 2, MOST_ROWS);
    s.columns = within(columns, 2, MOST_COLUMNS - 1);
    move(s.row, s.column);
    ioctl(terminal, TIOCSWINSZ, &size);
}

static void start(char **argv) {
    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal)) {
        perror("terminal");
        exit(2);
    }
    const char *other = ptsname(terminal);
    child = fork();
    if (child == 0) {
        setsid();
        int side = open(other, O_RDWR); /* becomes the controlling terminal */
        struct winsize size = {.ws_row = (unsigned short)s.rows,
                               .ws_col = (unsigned short)s.columns};
        ioctl(side, TIOCSWINSZ, &size);
        dup2(side, 0);
        dup2(side, 1);
        dup2(side, 2);
        if (side > 2) close(side);
        close(terminal);
        execvp(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    fcntl(terminal, F_SETFL, fcntl(terminal, F_GETFL) | O_NONBLOCK);
}

/* ---- steps */

static size_t unescape(const char *from, char *to) {
    char *start_of = to;
    for (; *from; from++) {
        if (*from != '\\' || !from[1]) {
            *to++ = *from;
            continue;
        }
        unsigned byte;
        switch (*++from) {
        case 'n': *to++ = '\n'; break;
        case 'r': *to++ = '\r'; break;
        case 't': *to++ = '\t'; break;
        case 'e': *to++ = '\033'; break;
        case 's': *to++ = ' '; break;
        case 'x':
            if (sscanf(from + 1, "%2x", &byte) == 1) *to++ = (char)byte, from += 2;
            break;
        default: *to++ = *from;
        }
    }
    *to = '\0';
    return (size_t)(to - start_of);
}

static double limit(void) {
    const char *text = getenv("MILLRACE_TERMINAL_SECONDS");
    return text ? atof(text) : 20;
}

static void fail(const char *step) {
    printf("failed: %s\n", step);
    shot();
    kill(child, SIGKILL);
    exit(1);
}

static void wait_for(const char *text, bool shown, const char *step) {
    double until = now() + limit();
    while (shows(text) != shown) {
        if (now() > until || is_closed) fail(step);
        listen_for(20);
    }
}

/* Writes the text before the cursor; false if that is no prompt. */
static bool prompt_text(char *out) {
    line_text(s.row, out);
    size_t size = strlen(out);
    return size && (int)size == s.column - 1 && out[size - 1] == '>';
}

/* Typed before the prompt is there, a text is shown twice: by the terminal, amid what is printed,
 * and by readline. Ctrl-L brings the prompt to the first row, or to the second, below the line of
 * what is pending. The next prompt stands below it or, where that line goes, is another one. */
static void enter(const char *text, size_t size, const char *step) {
    char before[MOST_COLUMNS * CELL], prompt[MOST_COLUMNS * CELL];
    double until = now() + limit();
    int row = -1;
    type("\014", 1);
    while (row < 0 || !prompt_text(prompt) || (s.row <= row && strcmp(prompt, before) == 0)) {
        if (row < 0 && s.row <= 1 && prompt_text(before)) {
            row = s.row;
            type(text, size);
        }
        if (now() > until || is_closed) fail(step);
        listen_for(20);
    }
}

static void paste(const char *path, const char *step) {
    FILE *file = fopen(path, "rb");
    static char piece[1 << 16];
    size_t size;
    if (!file) fail(step);
    type("\033[200~", 6);
    while ((size = fread(piece, 1, sizeof piece, file)) > 0) type(piece, size);
    type("\033[201~", 6);
    fclose(file);
    type("\r", 1);
}

static void time_key(char *texts, const char *step) {
    char keys[256], shown[256], *space = strchr(texts, ' ');
    if (!space) fail(step);
    *space = '\0';
    size_t size = unescape(texts, keys);
    unescape(space + 1, shown);
    double began = now();
    type(keys, size);
    while (!shows(shown)) {
        if (now() > began + limit()) fail(step);
        listen_for(1);
    }
    printf("key %.3f\n", (now() - began) * 1e3);
}

static int occurrences(const char *text) {
    int count = 0;
    for (const char *at = written; at && (at = strstr(at, text)); at += strlen(text)) count++;
    return count;
}

static void count_text(char *arguments, const char *step) {
    char text[256], *space = strrchr(arguments, ' ');
    if (!space) fail(step);
    *space = '\0';
    unescape(arguments, text);
    double until = now() + limit();
    while (occurrences(text) < atoi(space + 1) && now() < until && !is_closed) listen_for(20);
    printf("count %d\n", occurrences(text));
}

static int rows_with(const char *text) {
    char line[MOST_COLUMNS * CELL];
    int count = 0;
    for (int i = 0; i < s.rows; i++) {
        line_text(i, line);
        count += strstr(line, text) != NULL;
    }
    return count;
}

static void wait_for_rows(char *arguments, const char *step) {
    char text[256], *space = strrchr(arguments, ' ');
    if (!space) fail(step);
    *space = '\0';
    unescape(arguments, text);
    double until = now() + limit();
    while (rows_with(text) != atoi(space + 1)) {
        if (now() > until || is_closed) fail(step);
        listen_for(20);
    }
}

static void wait_for_exit(const char *step) {
    int status;
    double until = now() + limit();
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (now() > until) fail(step);
        listen_for(20);
    }
    while (!is_closed && now() < until) listen_for(50);
    printf("exit %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void carry_out(char *step) {
    static char text[1 << 16];
    char copy[256], *argument = strchr(step, ' ');
    snprintf(copy, sizeof copy, "%s", step);
    if (argument) *argument++ = '\0';
    else argument = step + strlen(step);
    int rows, columns;
    if (strcmp(step, "wait") == 0) unescape(argument, text), wait_for(text, true, copy);
    else if (strcmp(step, "gone") == 0) unescape(argument, text), wait_for(text, false, copy);
    else if (strcmp(step, "send") == 0) type(text, unescape(argument, text));
    else if (strcmp(step, "enter") == 0) enter(text, unescape(argument, text), copy);
    else if (strcmp(step, "paste") == 0) paste(argument, copy);
    else if (strcmp(step, "size") == 0 && sscanf(argument, "%d %d", &rows, &columns) == 2)
        set_size(rows, columns);
    else if (strcmp(step, "shot") == 0) listen_for(100), shot();
    else if (strcmp(step, "key") == 0) time_key(argument, copy);
    else if (strcmp(step, "count") == 0) count_text(argument, copy);
    else if (strcmp(step, "rows") == 0) wait_for_rows(argument, copy);
    else if (strcmp(step, "signal") == 0) kill(child, atoi(argument));
    else if (strcmp(step, "exit") == 0) wait_for_exit(copy);
    else fail(copy);
}

int main(int argc, char **argv) {
    static char line[1 << 16];
    if (argc < 5) {
        fprintf(stderr, "usage: terminal ROWS COLUMNS STEPS PROGRAM [ARGUMENTS]\n");
        return 2;
    }
    FILE *steps = fopen(argv[3], "r");
    if (!steps) {
        perror(argv[3]);
        return 2;
    }
    s.rows = within(atoi(argv[1]), 2, MOST_ROWS);
    s.columns = within(atoi(argv[2]), 2, MOST_COLUMNS - 1);
    for (int i = 0; i < MOST_ROWS; i++) clear_cells(i, 0, MOST_COLUMNS);
    signal(SIGPIPE, SIG_IGN);
    start(argv + 4);
    while (fgets(line, sizeof line, steps)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line) carry_out(line);
    }
    fclose(steps);
    kill(child, SIGKILL);
    return 0;
}
