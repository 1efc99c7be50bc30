/* SPDX-License-Identifier: MIT
 *
 * Finds python on PATH, asks it for its folders with a time limit, and reads torch's version file
 * as text. */
#include "advise/python.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_BYTES 65536
#define DEFAULT_TIMEOUT_MS 5000

/* Its version, and the folders it imports from, one a line. -I leaves the user's own folder out of
 * sys.path; outside a virtual environment an ordinary start has it. */
static char question[] = "import sys, sysconfig\n"
                         "print('.'.join(map(str, sys.version_info[:3])))\n"
                         "if sys.prefix == getattr(sys, 'base_prefix', sys.prefix):\n"
                         "    print(sysconfig.get_path('purelib', 'posix_user'))\n"
                         "print('\\n'.join(sys.path))\n"
                         "print(sysconfig.get_path('purelib'))\n"
                         "print(sysconfig.get_path('platlib'))\n";

static bool is_program(const char *folder, size_t length, const char *name, char *path,
                       size_t capacity)
{
    int needed = snprintf(path, capacity, "%.*s/%s", (int)length, folder, name);
    return needed > 0 && (size_t)needed < capacity && length > 0 && access(path, X_OK) == 0;
}

/* The first folder of PATH that has python3, or python. */
static bool find_on_path(const char *path, char *program, size_t capacity)
{
    for (const char *at = path; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ":");
        if (is_program(at, length, "python3", program, capacity) ||
            is_program(at, length, "python", program, capacity)) {
            return true;
        }
        at += length + (at[length] == ':' ? 1 : 0);
    }
    program[0] = '\0';
    return false;
}

static void choose_program(const uf_python_place *place, uf_python *python)
{
    const char *active = place->virtual_env != NULL && place->virtual_env[0] != '\0'
                             ? place->virtual_env
                             : place->conda_prefix;
    bool has_path = find_on_path(place->path, python->program, sizeof python->program);
    if (active == NULL || active[0] == '\0') {
        return;
    }
    char folder[1024], program[1024];
    snprintf(folder, sizeof folder, "%s/bin", active);
    size_t length = strlen(folder);
    if (!is_program(folder, length, "python3", program, sizeof program) &&
        !is_program(folder, length, "python", program, sizeof program)) {
        return;
    }
    if (!has_path) {
        memcpy(python->program, program, sizeof program);
    } else if (strncmp(python->program, folder, length) != 0 || python->program[length] != '/') {
        python->is_outside_environment = true;
        snprintf(python->environment, sizeof python->environment, "%s", active);
    }
}

static int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void run_child(const char *program, int output)
{
    char name[1024];
    snprintf(name, sizeof name, "%s", program);
    char isolated[] = "-I", code[] = "-c";
    char *words[] = {name, isolated, code, question, NULL};
    int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0) {
        (void)dup2(nothing, STDIN_FILENO);
        (void)dup2(nothing, STDERR_FILENO);
    }
    (void)dup2(output, STDOUT_FILENO);
    execv(program, words);
    _exit(127);
}

/* Reads until the other end is closed or the time is over. */
static size_t read_answer(int file, int timeout_ms, char *text, size_t capacity, bool *is_late)
{
    int64_t end = now_ms() + timeout_ms;
    size_t filled = 0;
    *is_late = false;
    while (filled + 1 < capacity) {
        int64_t left = end - now_ms();
        struct pollfd wait = {.fd = file, .events = POLLIN};
        int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready <= 0) {
            *is_late = true;
            break;
        }
        ssize_t count = read(file, text + filled, capacity - 1 - filled);
        if (count <= 0) {
            break;
        }
        filled += (size_t)count;
    }
    text[filled] = '\0';
    return filled;
}

static bool ask(const uf_python_place *place, uf_python *python, char *answer, size_t capacity)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        snprintf(python->failure, sizeof python->failure, "no pipe to it: %s", strerror(errno));
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        run_child(python->program, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        snprintf(python->failure, sizeof python->failure, "cannot start it: %s", strerror(errno));
        return false;
    }
    bool is_late;
    int status = 0;
    int timeout_ms = place->timeout_ms > 0 ? place->timeout_ms : DEFAULT_TIMEOUT_MS;
    size_t length = read_answer(ends[0], timeout_ms, answer, capacity, &is_late);
    close(ends[0]);
    if (is_late) {
        (void)kill(child, SIGKILL);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (is_late) {
        snprintf(python->failure, sizeof python->failure, "no answer within %d ms", timeout_ms);
        return false;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || length == 0) {
        snprintf(python->failure, sizeof python->failure, "it ended with %s %d",
                 WIFEXITED(status) ? "exit code" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        return false;
    }
    return true;
}

/* NAME = 'value', NAME: type = 'value', or None; *is_none tells the last. False: no such line. */
static bool find_value(const char *text, const char *name, char *value, size_t capacity,
                       bool *is_none)
{
    size_t name_length = strlen(name);
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = line + strcspn(line, "\n");
        const char *after = line + name_length;
        if (strncmp(line, name, name_length) == 0 && after < end &&
            strchr(" \t:=", *after) != NULL) {
            const char *equals = memchr(after, '=', (size_t)(end - after));
            const char *at = equals == NULL ? end : equals + 1;
            at += strspn(at, " \t");
            if (at < end && (*at == '\'' || *at == '"')) {
                size_t length = strcspn(at + 1, "'\"\n");
                snprintf(value, capacity, "%.*s", (int)length, at + 1);
                *is_none = false;
                return true;
            }
            if (strncmp(at, "None", 4) == 0) {
                *is_none = true;
                return true;
            }
        }
        line = *end == '\n' ? end + 1 : NULL;
    }
    return false;
}

void uf__python_read_version(const char *text, uf_python *python)
{
    char runtime[sizeof python->torch_runtime] = "";
    bool is_none = false;
    if (find_value(text, "__version__", python->torch_version, sizeof python->torch_version,
                   &is_none) &&
        is_none) {
        python->torch_version[0] = '\0';
    }
    python->torch = UF_TORCH_UNKNOWN;
    python->torch_runtime[0] = '\0';
    bool has_hip = find_value(text, "hip", runtime, sizeof runtime, &is_none);
    if (has_hip && !is_none) {
        python->torch = UF_TORCH_HIP;
        memcpy(python->torch_runtime, runtime, sizeof runtime);
        return;
    }
    if (find_value(text, "cuda", runtime, sizeof runtime, &is_none)) {
        python->torch = is_none ? UF_TORCH_CPU : UF_TORCH_CUDA;
        memcpy(python->torch_runtime, runtime, is_none ? 0 : sizeof runtime);
    }
}

static bool read_text(const char *path, char *text, size_t capacity)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return false;
    }
    size_t filled = fread(text, 1, capacity - 1, file);
    fclose(file);
    text[filled] = '\0';
    return true;
}

/* torch-VERSION.dist-info: its name tells the version. */
static void find_metadata(const char *folder, uf_python *python)
{
    DIR *listing = opendir(folder);
    struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        const char *name = entry->d_name, *ending = strstr(name, ".dist-info");
        if (strncmp(name, "torch-", 6) == 0 && ending != NULL && ending[10] == '\0') {
            snprintf(python->torch_metadata_version, sizeof python->torch_metadata_version, "%.*s",
                     (int)(ending - name - 6), name + 6);
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
}

static bool find_torch(const char *folder, size_t length, uf_python *python)
{
    char path[1200], text[8192];
    if (length == 0 || length > sizeof python->torch_folder - 8) {
        return false;
    }
    snprintf(python->torch_folder, sizeof python->torch_folder, "%.*s/torch", (int)length, folder);
    snprintf(path, sizeof path, "%s/version.py", python->torch_folder);
    if (read_text(path, text, sizeof text)) {
        uf__python_read_version(text, python);
    } else {
        snprintf(path, sizeof path, "%s/__init__.py", python->torch_folder);
        if (access(path, F_OK) != 0) {
            python->torch_folder[0] = '\0';
            return false;
        }
        python->torch = UF_TORCH_UNKNOWN;
    }
    snprintf(path, sizeof path, "%.*s", (int)length, folder);
    find_metadata(path, python);
    return true;
}

/* Folders with `separator` between, in the order Python imports from them. */
static bool find_torch_in(const char *folders, const char *separator, uf_python *python)
{
    for (const char *at = folders; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, separator);
        if (find_torch(at, length, python)) {
            return true;
        }
        at += length + (at[length] != '\0' ? 1 : 0);
    }
    return false;
}

void uf__python_find(const uf_python_place *place, uf_python *python)
{
    static const char no_python[] = "neither python3 nor python is on PATH";
    memset(python, 0, sizeof *python);
    choose_program(place, python);
    if (python->program[0] == '\0') {
        memcpy(python->failure, no_python, sizeof no_python);
        return;
    }
    char *answer = malloc(ANSWER_BYTES);
    if (answer == NULL) {
        snprintf(python->failure, sizeof python->failure, "no host memory");
        return;
    }
    if (ask(place, python, answer, ANSWER_BYTES)) {
        size_t length = strcspn(answer, "\n");
        snprintf(python->version, sizeof python->version, "%.*s", (int)length, answer);
        if (!find_torch_in(place->python_path, ":", python)) {
            (void)find_torch_in(answer + length, "\n", python);
        }
    }
    free(answer);
}

/* "12.8" -> 12008; 0 if it is none. */
static int read_release(const char *text)
{
    int major = 0, minor = 0;
    return sscanf(text, "%d.%d", &major, &minor) == 2 && major > 0 && minor >= 0 && major < 1000 &&
                   minor < 100
               ? major * 1000 + minor * 10
               : 0;
}

uf_torch_fit uf__torch_fit(const uf_python *python, int driver_version)
{
    int wanted = read_release(python->torch_runtime);
    if (python->torch != UF_TORCH_CUDA || wanted == 0 || driver_version <= 0) {
        return UF_TORCH_FIT_UNKNOWN;
    }
    if (driver_version / 10 >= wanted / 10) {
        return UF_TORCH_FIT_YES;
    }
    /* Within a major release a program runs on earlier drivers, since CUDA 11. */
    bool is_same_major = driver_version / 1000 == wanted / 1000;
    return is_same_major && wanted >= 11000 ? UF_TORCH_FIT_MINOR : UF_TORCH_FIT_NO;
}

bool uf__torch_knows_card(const uf_python *python, int capability_major)
{
    /* The first CUDA release that compiles for a capability or for an earlier one of its family. */
    static const struct {
        int major, release;
    } first[] = {{7, 9000}, {8, 11000}, {9, 11080}, {10, 12080}, {12, 12080}};
    int release = read_release(python->torch_runtime);
    if (python->torch != UF_TORCH_CUDA || release == 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        if (first[i].major == capability_major) {
            return release >= first[i].release;
        }
    }
    return true;
}
