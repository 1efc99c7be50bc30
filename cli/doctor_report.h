/* SPDX-License-Identifier: MIT
 *
 * The result of `unfrag doctor`, as text and as JSON. What is not known is "-" and null. */
#ifndef CLI_DOCTOR_REPORT_H
#define CLI_DOCTOR_REPORT_H

#include "advise/doctor.h"
#include "exit_code.h"

cli_exit cli_doctor_print(const uf_doctor *doctor);
cli_exit cli_doctor_print_json(const uf_doctor *doctor);

#endif
