/* SPDX-License-Identifier: MIT
 *
 * The child runs in our process group, so that a terminal's Ctrl-C reaches both; other signals that
 * ask to end are handed on. Nothing of the command line is looked at. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/size.h"
#include "interrupt.h"

#define HOOK "hook/sitecustomize.py"

void cli_variables_set(cli_variables *list, const char *name, const char *value)
{
    if (list->count == CLI_VARIABLES_MOST) {
        list->has_failed = true;
        return;
    }
    cli_variable *item = &list->items[list->count++];
    item->name = strdup(name);
    item->value = value != NULL ? strdup(value) : NULL;
    list->has_failed =
        list->has_failed || item->name == NULL || (value != NULL && item->value == NULL);
}

void cli_variables_fini(cli_variables *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].value);
    }
    memset(list, 0, sizeof *list);
}

/* folder if it holds the hook, NULL otherwise. Takes folder over. */
static char *folder_with_hook(char *folder)
{
    char *path = NULL, *found = NULL;
    if (folder != NULL && asprintf(&path, "%s/%s", folder, HOOK) >= 0) {
        found = access(path, R_OK) == 0 ? realpath(folder, NULL) : NULL;
        free(path);
    }
    free(folder);
    return found;
}

static char *joined(const char *folder, const char *relative)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, relative) >= 0 ? path : NULL;
}

char *cli_python_folder(void)
{
    const char *home = getenv("UNFRAG_HOME");
    if (home != NULL && home[0] != '\0') {
        return folder_with_hook(joined(home, "python"));
    }
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    char *found = NULL;
    if (length > 0) {
        program[length] = '\0';
        char *slash = strrchr(program, '/');
        if (slash != NULL) {
            *slash = '\0';
            found = folder_with_hook(joined(program, "../python"));
            found =
                found != NULL ? found : folder_with_hook(joined(program, "../share/unfrag/python"));
        }
    }
    return found != NULL ? found : folder_with_hook(joined(CLI_INSTALLED_DATA_DIR, "python"));
}

/* PYTHONPATH with hook in front, and not twice when one unfrag starts another. */
static char *python_path(const char *hook)
{
    const char *before = getenv("PYTHONPATH");
    char *path = NULL;
    if (before == NULL || before[0] == '\0') {
        return strdup(hook);
    }
    size_t length = strlen(hook);
    if (strncmp(before, hook, length) == 0 && (before[length] == ':' || before[length] == '\0')) {
        return strdup(before);
    }
    return asprintf(&path, "%s:%s", hook, before) >= 0 ? path : NULL;
}

uf_status cli_launch_variables(const char *mode, cli_variables *list, uf_error *error)
{
    char *folder = cli_python_folder();
    if (folder == NULL) {
        return uf__error_set(error, UF_ERROR_NOT_FOUND,
                             "unfrag's Python files (python/" HOOK ") are not where this program "
                             "is: set UNFRAG_HOME to the checkout, or install unfrag again");
    }
    char *hook = joined(folder, "hook");
    char *path = hook != NULL ? python_path(hook) : NULL;
    if (path != NULL) {
        cli_variables_set(list, "PYTHONPATH", path);
        cli_variables_set(list, "UNFRAG_MODE", mode);
    }
    bool is_done = path != NULL && !list->has_failed;
    free(path);
    free(hook);
    free(folder);
    return is_done
               ? UF_OK
               : uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to start a program");
}

uf_status cli_launch_limit(const char *text, uf_error *error)
{
    uint64_t bytes;
    uf_error why = {0};
    /* A share is of each GPU, whose size the program will see: any whole will do to check it. */
    uf_status status = uf__size_parse_of(text, UINT64_C(1) << 40, &bytes, &why);
    if (status != UF_OK) {
        return uf__error_set(error, status, "--limit: %s", why.text);
    }
    if (bytes < UINT64_C(1) << 20) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "--limit: '%s' is less than 1 MiB: write 6GiB, 512MiB, or 90%%", text);
    }
    return UF_OK;
}

static volatile sig_atomic_t child_pid;

static void hand_on(int number)
{
    if (child_pid > 0) {
        (void)kill((pid_t)child_pid, number);
    }
}

static const int HANDED_ON[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};
enum { HANDED_ON_COUNT = sizeof HANDED_ON / sizeof HANDED_ON[0] };

typedef struct signals_before {
    struct sigaction handed_on[HANDED_ON_COUNT];
    struct sigaction interrupt;
    sigset_t mask;
} signals_before;

/* A terminal sends SIGINT to the child as well: here it is noted (trial) or ignored (run). A signal
 * that was ignored before us, as under nohup, stays ignored. */
static void take_signals(const cli_launch *launch, signals_before *before)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = hand_on;
    /* Held back until there is a child to hand them to. */
    sigset_t held;
    sigemptyset(&held);
    for (int i = 0; i < HANDED_ON_COUNT; i++) {
        sigaddset(&held, HANDED_ON[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &held, &before->mask);
    for (int i = 0; i < HANDED_ON_COUNT; i++) {
        (void)sigaction(HANDED_ON[i], NULL, &before->handed_on[i]);
        if (before->handed_on[i].sa_handler != SIG_IGN) {
            (void)sigaction(HANDED_ON[i], &action, NULL);
        }
    }
    (void)sigaction(SIGINT, NULL, &before->interrupt);
    if (!launch->is_interruptible) {
        action.sa_handler = SIG_IGN;
        (void)sigaction(SIGINT, &action, NULL);
    }
}

static void give_signals_back(const cli_launch *launch, const signals_before *before)
{
    for (int i = 0; i < HANDED_ON_COUNT; i++) {
        (void)sigaction(HANDED_ON[i], &before->handed_on[i], NULL);
    }
    if (!launch->is_interruptible) {
        (void)sigaction(SIGINT, &before->interrupt, NULL);
    }
    child_pid = 0;
}

/* In the child: never returns. */
static void become(const cli_launch *launch, const signals_before *before, int report)
{
    for (int i = 0; i < HANDED_ON_COUNT; i++) {
        (void)sigaction(HANDED_ON[i], &before->handed_on[i], NULL);
    }
    struct sigaction interrupt = before->interrupt;
    if (interrupt.sa_handler != SIG_IGN) {
        interrupt.sa_handler = SIG_DFL; /* ours is no handler of the child's */
    }
    (void)sigaction(SIGINT, &interrupt, NULL);
    (void)sigprocmask(SIG_SETMASK, &before->mask, NULL);
    for (size_t i = 0; i < launch->variables->count; i++) {
        const cli_variable *item = &launch->variables->items[i];
        if (item->value != NULL) {
            (void)setenv(item->name, item->value, 1);
        } else {
            (void)unsetenv(item->name);
        }
    }
    if (launch->output_descriptor >= 0) {
        (void)dup2(launch->output_descriptor, STDOUT_FILENO);
        (void)dup2(launch->output_descriptor, STDERR_FILENO);
    }
    (void)execvp(launch->command[0], launch->command);
    int why = errno;
    (void)!write(report, &why, sizeof why);
    _exit(127);
}

static double now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Waits for the child; asks it to end on a timeout or Ctrl-C, and kills it 5 s later. */
static int wait_for(const cli_launch *launch, pid_t child, double start, cli_launch_end *end)
{
    struct rusage usage;
    int status = 0;
    double killed_at = 0;
    for (;;) {
        bool is_polling = launch->timeout_seconds > 0 || launch->is_interruptible;
        pid_t found = wait4(child, &status, is_polling ? WNOHANG : 0, &usage);
        if (found == child) {
            end->peak_resident_kib = usage.ru_maxrss;
            return status;
        }
        if (found < 0 && errno != EINTR) {
            return status;
        }
        double now = now_seconds();
        bool is_late = launch->timeout_seconds > 0 && now - start > launch->timeout_seconds;
        bool is_stopping = launch->is_interruptible && cli_is_interrupted();
        if (killed_at == 0 && (is_late || is_stopping)) {
            end->is_timeout = is_late;
            end->is_interrupted = !is_late;
            (void)kill(child, SIGTERM);
            killed_at = now + 5;
        } else if (killed_at > 0 && now > killed_at) {
            (void)kill(child, SIGKILL);
        }
        if (is_polling) {
            (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
    }
}

static uf_status not_started(const cli_launch *launch, int why, uf_error *error)
{
    return uf__error_set(error, why == ENOMEM ? UF_ERROR_HOST_MEMORY : UF_ERROR_IO,
                         "%s cannot be started: %s", launch->command[0], strerror(why));
}

uf_status cli_launch_wait(const cli_launch *launch, cli_launch_end *end, uf_error *error)
{
    int report[2];
    memset(end, 0, sizeof *end);
    if (launch->variables->has_failed) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to start a program");
    }
    if (pipe2(report, O_CLOEXEC) != 0) {
        return not_started(launch, errno, error);
    }
    (void)fflush(NULL);
    signals_before before;
    take_signals(launch, &before);
    double start = now_seconds();
    pid_t child = fork();
    if (child == 0) {
        become(launch, &before, report[1]);
    }
    int why = errno;
    child_pid = child > 0 ? child : 0;
    (void)sigprocmask(SIG_SETMASK, &before.mask, NULL);
    (void)close(report[1]);
    uf_status status = UF_OK;
    if (child < 0) {
        status = not_started(launch, why, error);
    } else {
        int code = wait_for(launch, child, start, end);
        end->exit_code = WIFEXITED(code) ? WEXITSTATUS(code) : -1;
        end->signal = WIFSIGNALED(code) ? WTERMSIG(code) : 0;
        end->seconds = now_seconds() - start;
        if (read(report[0], &why, sizeof why) == (ssize_t)sizeof why) {
            status = not_started(launch, why, error);
        }
    }
    give_signals_back(launch, &before);
    (void)close(report[0]);
    return status;
}

static const char *meaning_of(int number)
{
    switch (number) {
    case SIGKILL:
        return "killed from outside. If nobody did that, the host's memory ran out (Linux's OOM "
               "killer; 'dmesg | grep -i oom' says so), or a container's or job's limit: it is not "
               "the GPU's memory. Load weights without copies (safetensors, low_cpu_mem_usage), or "
               "give it more RAM or swap";
    case SIGABRT:
        return "aborted by itself: a C++ exception that nobody caught, such as a settings string "
               "that PyTorch refuses at import (unfrag check --env), or an error in a destructor. "
               "The lines above have it";
    case SIGSEGV:
    case SIGBUS:
        return "an invalid access to host memory. Try UNFRAG_DISABLE=1: if it crashes there, too, "
               "it is not the allocator's doing";
    case SIGTERM:
        return "asked to end (kill, a batch system, or a container that stops)";
    case SIGXCPU:
        return "its limit of CPU time is reached (ulimit -t)";
    default:
        return NULL;
    }
}

void cli_launch_explain(const cli_launch *launch, const cli_launch_end *end)
{
    int number = end->signal;
    if (launch->is_quiet || end->is_interrupted || number == SIGINT) {
        return;
    }
    if (number == 0 && (end->exit_code == 134 || end->exit_code == 137)) {
        number = end->exit_code - 128; /* a shell in between says it so */
    }
    const char *meaning = meaning_of(number);
    if (number == 0 || (end->signal == 0 && meaning == NULL)) {
        return;
    }
    fprintf(stderr, "unfrag %s: %s ended by %s", launch->verb, launch->command[0],
            strsignal(number));
    if (end->signal == 0) {
        fprintf(stderr, " (exit code %d)", end->exit_code);
    }
    if (meaning != NULL) {
        fprintf(stderr, ": %s", meaning);
    }
    fputc('\n', stderr);
}

int cli_launch_code(const cli_launch_end *end)
{
    return end->signal != 0 ? 128 + end->signal : end->exit_code;
}
