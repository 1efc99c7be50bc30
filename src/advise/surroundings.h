/* SPDX-License-Identifier: MIT
 *
 * The variables of an environment that change GPU memory, and for each whether it is active: not
 * whether it is accepted, but whether anything differs because of it. Judged for the torch that was
 * found and for what the driver really can. No lock. */
#ifndef UF_ADVISE_SURROUNDINGS_H
#define UF_ADVISE_SURROUNDINGS_H

#include "advise/check.h"
#include "advise/python.h"
#include "device/cuda_probe.h"

typedef enum uf_active {
    UF_ACTIVE_UNKNOWN, /* it takes a GPU or a torch to tell */
    UF_ACTIVE_YES,
    UF_ACTIVE_PARTLY, /* some of its options are inert */
    UF_ACTIVE_NO,     /* accepted, and nothing differs */
    UF_ACTIVE_REFUSED /* an error: the program stops, or the variable is not what was meant */
} uf_active;

/* Texts belong to the surroundings. */
typedef struct uf_surrounding {
    const char *name, *value;
    uf_active active;
    bool is_fault;   /* somebody meant something by it that does not come true */
    const char *why; /* a sentence; "" if there is nothing to say */
    const char *fix; /* the corrected value; "" = leave it out; NULL = none */
} uf_surrounding;

#define UF_SURROUNDINGS_MAX 24

typedef struct uf_surroundings {
    uf_surrounding items[UF_SURROUNDINGS_MAX];
    uint32_t count;
    uf_check check;      /* of the settings; owns the texts */
    bool is_torch_known; /* judged for the torch that was found, not for the newest known */
    bool has_conf;       /* a settings variable is set */
    bool is_expandable;  /* expandable_segments is in force */
} uf_surroundings;

/* variables: count texts NAME=VALUE, such as environ. Returns UF_OK or UF_ERROR_HOST_MEMORY. The
 * caller ends *surroundings with uf__surroundings_fini, whatever was returned. */
uf_status uf__surroundings_read(const char *const *variables, size_t count, const uf_python *python,
                                const uf_cuda_probe *probe, uf_surroundings *surroundings,
                                uf_error *error) UF_MUST_USE;
void uf__surroundings_fini(uf_surroundings *surroundings);

/* "yes", "partly", "no", "refused", "unknown"; static text. */
const char *uf__active_name(uf_active active);

#endif
