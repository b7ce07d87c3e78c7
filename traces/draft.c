/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/draft.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum bell_status bell_draft_open(struct bell_draft *draft, const char *path, struct bell_error *err)
{
    struct stat st;
    draft->fd = -1;
    int n = snprintf(draft->temporary, sizeof draft->temporary, "%s.%ld.tmp", path, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof draft->temporary)
        return bell_fail(err, BELL_INVALID, "%.80s...: the path is too long", path);
    memcpy(draft->path, path, strlen(path) + 1);
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) return bell_fail(err, BELL_IO, "%s: is a directory", path);
    if (exists && !S_ISREG(st.st_mode)) {
        draft->temporary[0] = '\0';
        draft->fd = open(path, O_WRONLY | O_CLOEXEC);
    } else {
        (void)unlink(draft->temporary);
        draft->fd = open(draft->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (draft->fd < 0) return bell_fail(err, BELL_IO, "%s: cannot create: %s", path, strerror(errno));
    return BELL_OK;
}

enum bell_status bell_draft_keep(struct bell_draft *draft, struct bell_error *err)
{
    enum bell_status s = BELL_OK;
    if (close(draft->fd) != 0) s = bell_fail(err, BELL_IO, "%s: cannot close: %s", draft->path, strerror(errno));
    draft->fd = -1;
    if (s == BELL_OK && draft->temporary[0] && rename(draft->temporary, draft->path) != 0)
        s = bell_fail(err, BELL_IO, "%s: cannot rename to this name: %s", draft->path, strerror(errno));
    if (s == BELL_OK) draft->temporary[0] = '\0';
    bell_draft_drop(draft);
    return s;
}

void bell_draft_drop(struct bell_draft *draft)
{
    if (draft->fd >= 0) (void)close(draft->fd);
    if (draft->temporary[0]) (void)unlink(draft->temporary);
    draft->fd = -1;
    draft->temporary[0] = '\0';
}
