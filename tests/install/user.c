/* SPDX-License-Identifier: Apache-2.0
 * A user of the installed library: includes its headers by their public names and calls into it. */
#include <stdio.h>
#include <string.h>

#include "core/event.h"
#include "core/status.h"

int main(void)
{
    struct bell_error err;
    if (bell_fail(&err, BELL_INVALID, "row %d", 7) != BELL_INVALID || strcmp(err.text, "row 7") != 0) return 1;
    printf("%s: %s, %s\n", bell_status_text(err.status), err.text, bell_event_name(BELL_EVENT_DOORBELL));
    return 0;
}
