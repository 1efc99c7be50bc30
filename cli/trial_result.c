/* SPDX-License-Identifier: MIT
 *
 * See trial_result.h. */
#include "trial_result.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

void trial_setting_name(trial_setting *setting)
{
    if (setting->policy != NULL) {
        snprintf(setting->name, sizeof setting->name, "policy %s", setting->policy);
    } else {
        snprintf(setting->name, sizeof setting->name, "%s",
                 setting->conf[0] != '\0' ? setting->conf : "default");
    }
}

bool trial_results_add(trial_results *results, const trial_run *run)
{
    if (results->count == results->capacity) {
        size_t capacity = results->capacity == 0 ? 64 : 2 * results->capacity;
        trial_run *runs = realloc(results->runs, capacity * sizeof *runs);
        if (runs == NULL) {
            return false;
        }
        results->runs = runs;
        results->capacity = capacity;
    }
    results->runs[results->count++] = *run;
    return true;
}

void trial_results_fini(trial_results *results)
{
    free(results->runs);
    memset(results, 0, sizeof *results);
}

bool trial_results_has(const trial_results *results, size_t setting, uint64_t number)
{
    for (size_t i = 0; i < results->count; i++) {
        if (results->runs[i].setting == setting && results->runs[i].number == number) {
            return true;
        }
    }
    return false;
}

static int64_t integer_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static bool read_run(const json_t *object, const trial_setting *settings, size_t setting_count,
                     trial_run *run)
{
    const char *name = json_string_value(json_object_get(object, "setting"));
    size_t at = 0;
    while (name != NULL && at < setting_count && strcmp(settings[at].name, name) != 0) {
        at++;
    }
    if (name == NULL || at == setting_count || integer_of(object, "run") < 0) {
        return false;
    }
    *run = (trial_run){.setting = at,
                       .number = (uint64_t)integer_of(object, "run"),
                       .is_failed = json_is_true(json_object_get(object, "failed")),
                       .exit_code = (int)integer_of(object, "exit_code"),
                       .signal = (int)integer_of(object, "signal"),
                       .seconds = json_number_value(json_object_get(object, "seconds")),
                       .unit_count = integer_of(object, "units"),
                       .peak_reserved_bytes = integer_of(object, "peak_reserved_bytes"),
                       .peak_allocated_bytes = integer_of(object, "peak_allocated_bytes"),
                       .retry_count = integer_of(object, "num_alloc_retries"),
                       .oom_count = integer_of(object, "num_ooms")};
    return true;
}

static uf_status read_line(trial_results *results, const char *line, const char *what,
                           const trial_setting *settings, size_t setting_count, uf_error *error)
{
    json_t *object = json_loads(line, 0, NULL);
    const char *of = json_string_value(json_object_get(object, "trial_of"));
    uf_status status = UF_OK;
    trial_run run;
    if (of != NULL && strcmp(of, what) != 0) {
        status = uf__error_set(error, UF_ERROR_BAD_INPUT,
                               "it is of another command or limit ('%.120s'): name another file, "
                               "or remove it",
                               of);
    } else if (object != NULL && read_run(object, settings, setting_count, &run) &&
               !trial_results_has(results, run.setting, run.number) &&
               !trial_results_add(results, &run)) {
        status = uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory");
    }
    json_decref(object); /* a last line that was cut off is no object, and its run is made again */
    return status;
}

uf_status trial_results_read(trial_results *results, const char *path, const char *what,
                             const trial_setting *settings, size_t setting_count, uf_error *error)
{
    FILE *stream = fopen(path, "r");
    if (stream == NULL && errno == ENOENT) {
        return UF_OK;
    }
    if (stream == NULL) {
        return uf__error_set(error, UF_ERROR_IO, "%s: %s", path, strerror(errno));
    }
    char *line = NULL;
    size_t capacity = 0;
    uf_status status = UF_OK;
    uf_error why = {0};
    while (status == UF_OK && getline(&line, &capacity, stream) > 0) {
        status = read_line(results, line, what, settings, setting_count, &why);
    }
    free(line);
    (void)fclose(stream);
    return status == UF_OK ? UF_OK : uf__error_set(error, status, "%s: %s", path, why.text);
}

/* One object on one line, at once on its way. */
static bool write_line(FILE *stream, json_t *object)
{
    bool is_written = object != NULL && json_dumpf(object, stream, JSON_COMPACT) == 0 &&
                      fputc('\n', stream) != EOF && fflush(stream) == 0;
    json_decref(object);
    return is_written;
}

bool trial_run_write(FILE *stream, const trial_run *run, const trial_setting *setting)
{
    /* A number that is not known is -1 here as in trial_run. */
    return write_line(
        stream,
        json_pack("{s:s, s:I, s:b, s:i, s:i, s:f, s:I, s:I, s:I, s:I, s:I}", "setting",
                  setting->name, "run", (json_int_t)run->number, "failed", (int)run->is_failed,
                  "exit_code", run->exit_code, "signal", run->signal, "seconds", run->seconds,
                  "units", (json_int_t)run->unit_count, "peak_reserved_bytes",
                  (json_int_t)run->peak_reserved_bytes, "peak_allocated_bytes",
                  (json_int_t)run->peak_allocated_bytes, "num_alloc_retries",
                  (json_int_t)run->retry_count, "num_ooms", (json_int_t)run->oom_count));
}

bool trial_head_write(FILE *stream, const char *what)
{
    return write_line(stream, json_pack("{s:s}", "trial_of", what));
}

static void take_numbers(const char *path, trial_run *run)
{
    json_t *object = json_load_file(path, 0, NULL);
    int64_t peak = integer_of(object, "peak_reserved_bytes");
    if (peak > run->peak_reserved_bytes) {
        run->peak_reserved_bytes = peak;
        run->peak_allocated_bytes = integer_of(object, "peak_allocated_bytes");
        run->retry_count = integer_of(object, "num_alloc_retries");
        run->oom_count = integer_of(object, "num_ooms");
    }
    json_decref(object);
}

void trial_numbers_read(const char *folder, trial_run *run)
{
    run->peak_reserved_bytes = run->peak_allocated_bytes = -1;
    run->retry_count = run->oom_count = -1;
    DIR *stream = opendir(folder);
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char path[4096];
        size_t length = strlen(entry->d_name);
        bool is_name =
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path;
        if (!is_name || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (length > 5 && entry->d_name[0] != '.' &&
            strcmp(entry->d_name + length - 5, ".json") == 0) {
            take_numbers(path, run);
        }
        (void)unlink(path);
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double median_of(double *values, size_t count)
{
    if (count == 0) {
        return NAN;
    }
    qsort(values, count, sizeof *values, compare_doubles);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double value_of(const trial_run *run, int which)
{
    switch (which) {
    case 0:
        return run->is_failed ? -1 : run->seconds;
    case 1:
        return (double)run->unit_count;
    case 2:
        return (double)run->peak_reserved_bytes;
    default:
        return (double)run->retry_count;
    }
}

static double median_over(const trial_results *results, size_t setting, int which, double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < results->count; i++) {
        double value = value_of(&results->runs[i], which);
        if (results->runs[i].setting == setting && value >= 0) {
            values[count++] = value;
        }
    }
    return median_of(values, count);
}

void trial_summarise(const trial_results *results, size_t setting, trial_summary *summary)
{
    memset(summary, 0, sizeof *summary);
    for (size_t i = 0; i < results->count; i++) {
        const trial_run *run = &results->runs[i];
        if (run->setting == setting) {
            summary->run_count++;
            summary->failure_count += run->is_failed;
            summary->oom_run_count += run->is_failed && run->oom_count > 0;
        }
    }
    double n = (double)summary->run_count;
    if (n > 0) {
        /* Wilson, E. B.: Probable inference, the law of succession, and statistical inference.
         * Journal of the American Statistical Association 22 (1927). */
        const double z = 1.959963984540054;
        double p = (double)summary->failure_count / n, divisor = 1 + z * z / n;
        double centre = (p + z * z / (2 * n)) / divisor;
        double half = z / divisor * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
        summary->rate = p;
        summary->rate_low = p == 0 ? 0 : fmax(0, centre - half);
        summary->rate_high = p == 1 ? 1 : fmin(1, centre + half);
    } else {
        summary->rate = summary->rate_low = summary->rate_high = NAN;
    }
    double *values = calloc(results->count + 1, sizeof *values);
    if (values != NULL) {
        summary->seconds = median_over(results, setting, 0, values);
        summary->unit_count = median_over(results, setting, 1, values);
        summary->peak_reserved_bytes = median_over(results, setting, 2, values);
        summary->retry_count = median_over(results, setting, 3, values);
    }
    free(values);
}
