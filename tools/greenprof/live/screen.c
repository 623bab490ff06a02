// SPDX-License-Identifier: MIT
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static const char enter[] = "\033[?1049h\033[?25l\033[H\033[2J", leave[] = "\033[?25h\033[?1049l";
static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};

const char gp_screen_line_end[] = "\033[K";

static struct termios settings;
static bool has_settings; // of standard input, which is a terminal as well
static volatile sig_atomic_t is_open;

// Signals: safe.
static void screen_put(const char *text)
{
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

static void screen_take(void)
{
    struct termios raw = settings;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    if (has_settings)
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    screen_put(enter);
    is_open = 1;
}

static void screen_give_back(void)
{
    if (!is_open)
        return;
    is_open = 0;
    screen_put(leave);
    if (has_settings)
        tcsetattr(STDIN_FILENO, TCSANOW, &settings);
}

// The signal does what it does to any command, before and after.
static void screen_on_end(int number)
{
    int saved = errno;
    struct sigaction standard = {.sa_handler = SIG_DFL}, mine;
    sigset_t signals;
    screen_give_back();
    sigaction(number, &standard, &mine);
    sigemptyset(&signals);
    sigaddset(&signals, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &signals, NULL); // here it comes in
    sigaction(number, &mine, NULL);           // stopped before, now goes on
    screen_take();
    errno = saved;
}

static void screen_on_size(int number)
{
    (void)number;
}

bool gp_screen_open(void)
{
    struct sigaction action = {.sa_handler = screen_on_end}, size = {.sa_handler = screen_on_size}, old;
    if (!isatty(STDOUT_FILENO))
        return false;
    has_settings = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &settings) == 0;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
    sigaction(SIGWINCH, &size, NULL);
    atexit(screen_give_back);
    screen_take();
    return true;
}

void gp_screen_close(void)
{
    fflush(stdout);
    screen_give_back();
}

void gp_screen_size(size_t *lines, size_t *columns)
{
    struct winsize size;
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *lines = is_known && size.ws_row > 0 ? size.ws_row : 24;
    *columns = is_known && size.ws_col > 0 ? size.ws_col : 80;
}

void gp_screen_page_begin(void)
{
    fputs("\033[H", stdout);
}

void gp_screen_page_end(void)
{
    fputs("\033[J", stdout);
    fflush(stdout);
}

int gp_screen_key(int limit_ms)
{
    struct pollfd event = {.fd = has_settings ? STDIN_FILENO : -1, .events = POLLIN};
    unsigned char key;
    if (poll(&event, 1, limit_ms) <= 0)
        return 0;
    return read(STDIN_FILENO, &key, 1) == 1 ? key : 'q'; // the terminal is gone
}
