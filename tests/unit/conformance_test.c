/* SPDX-License-Identifier: MIT
 *
 * The conformance statements on the core. */
#include "oplog/core_model.h"
#include "oracle/conformance.h"

int main(void)
{
    return conformance_main(&core_model);
}
