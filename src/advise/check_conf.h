/* SPDX-License-Identifier: MIT
 *
 * Judges one settings string where it stands: what the release makes of it, and what its options
 * really do. The facts come from the parsers of alloc/conf.h. No lock. */
#ifndef UF_ADVISE_CHECK_CONF_H
#define UF_ADVISE_CHECK_CONF_H

#include "advise/check.h"

/* Adds the findings on setup->value (not NULL), read in the environment at import, or by a call of
 * the running program; *conf, the settings before, becomes those after. Returns true if the
 * release accepts it. */
bool uf__check_conf(uf_check *check, const uf_setup *setup, bool is_at_import, uf_conf *conf,
                    uf_conf_report *report);

#endif
