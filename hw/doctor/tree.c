/* SPDX-License-Identifier: Apache-2.0
 * Small files under a root. */
#include "hw/doctor/tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* /proc/cpuinfo names the first CPU, /proc/self/status its CPUs, within this. */
#define TEXT_MAX 8192

static bool full_path(const char *root, const char *format, va_list list, char out[BELL_TREE_PATH])
{
    int used = snprintf(out, BELL_TREE_PATH, "%s", root);
    int more =
        used < 0 || used >= BELL_TREE_PATH ? -1 : vsnprintf(out + used, BELL_TREE_PATH - (size_t)used, format, list);
    if (more >= 0 && used + more < BELL_TREE_PATH) return true;
    errno = ENAMETOOLONG;
    return false;
}

static ptrdiff_t read_path(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -1;
    size_t used = 0;
    ssize_t n = 1;
    while (used < size && n > 0) {
        n = read(fd, out + used, size - used);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            used += (size_t)n;
    }
    int held = errno;
    (void)close(fd);
    errno = held;
    return n < 0 ? -1 : (ptrdiff_t)used;
}

ptrdiff_t bell_tree_bytes(const char *root, void *out, size_t size, const char *format, ...)
{
    char path[BELL_TREE_PATH];
    va_list list;
    va_start(list, format);
    bool fits = full_path(root, format, list, path);
    va_end(list);
    return fits ? read_path(path, out, size) : -1;
}

static bool read_text(const char *path, char out[TEXT_MAX])
{
    ptrdiff_t n = read_path(path, out, TEXT_MAX - 1);
    out[n < 0 ? 0 : n] = '\0';
    return n >= 0;
}

/* The line at `from` without white space at its ends, cut to size. */
static void copy_line(const char *from, char *out, size_t size)
{
    from += strspn(from, " \t");
    size_t n = strcspn(from, "\n");
    while (n && isspace((unsigned char)from[n - 1]))
        n--;
    (void)snprintf(out, size, "%.*s", (int)n, from);
}

bool bell_tree_text(const char *root, char *out, size_t size, const char *format, ...)
{
    char path[BELL_TREE_PATH], text[TEXT_MAX];
    va_list list;
    va_start(list, format);
    bool ok = full_path(root, format, list, path);
    va_end(list);
    out[0] = '\0';
    if (!ok || !read_text(path, text)) return false;
    copy_line(text, out, size);
    return true;
}

bool bell_tree_number(const char *root, int64_t *out, const char *format, ...)
{
    char path[BELL_TREE_PATH], text[TEXT_MAX], *end;
    va_list list;
    va_start(list, format);
    bool ok = full_path(root, format, list, path);
    va_end(list);
    *out = 0;
    if (!ok || !read_text(path, text)) return false;
    errno = 0;
    int64_t value = strtoll(text, &end, 0);
    if (end == text || errno) {
        errno = EINVAL;
        return false;
    }
    *out = value;
    return true;
}

bool bell_tree_field(const char *root, const char *key, char *out, size_t size, const char *format, ...)
{
    char path[BELL_TREE_PATH], text[TEXT_MAX];
    size_t length = strlen(key);
    va_list list;
    va_start(list, format);
    bool ok = full_path(root, format, list, path);
    va_end(list);
    out[0] = '\0';
    if (!ok || !read_text(path, text)) return false;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *after = line + length;
        if (strncmp(line, key, length) != 0 || !strchr(": \t", *after) || !*after) continue;
        after += strspn(after, " \t");
        copy_line(after + (*after == ':'), out, size);
        return true;
    }
    errno = ENOENT;
    return false;
}

bool bell_tree_has(const char *root, const char *format, ...)
{
    char path[BELL_TREE_PATH];
    va_list list;
    va_start(list, format);
    bool ok = full_path(root, format, list, path);
    va_end(list);
    return ok && access(path, F_OK) == 0;
}

static int compare_names(const void *a, const void *b)
{
    return strverscmp(a, b);
}

size_t bell_tree_list(const char *root, char names[][BELL_TREE_NAME], size_t most, const char *format, ...)
{
    char path[BELL_TREE_PATH];
    size_t count = 0;
    va_list list;
    va_start(list, format);
    bool ok = full_path(root, format, list, path);
    va_end(list);
    DIR *folder = ok ? opendir(path) : NULL;
    if (!folder) return 0;
    for (const struct dirent *entry = readdir(folder); entry && count < most; entry = readdir(folder)) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= BELL_TREE_NAME) continue;
        (void)snprintf(names[count++], BELL_TREE_NAME, "%s", entry->d_name);
    }
    (void)closedir(folder);
    if (count) qsort(names, count, BELL_TREE_NAME, compare_names);
    return count;
}

bool bell_tree_real(const char *root, char out[BELL_TREE_PATH], const char *format, ...)
{
    char path[BELL_TREE_PATH], real[PATH_MAX], base[PATH_MAX] = "";
    va_list list;
    va_start(list, format);
    bool ok = full_path(root, format, list, path);
    va_end(list);
    out[0] = '\0';
    if (!ok || !realpath(path, real) || (*root && !realpath(root, base))) return false;
    size_t skip = strcmp(base, "/") == 0 ? 0 : strlen(base);
    if (strncmp(real, base, skip) != 0 || strlen(real + skip) >= BELL_TREE_PATH) {
        errno = ENAMETOOLONG;
        return false;
    }
    (void)snprintf(out, BELL_TREE_PATH, "%.*s", BELL_TREE_PATH - 1, real + skip);
    return true;
}

const char *bell_tree_why(void)
{
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
        return "is not there";
    case EACCES:
    case EPERM:
        return "may not be read by this user";
    case EINVAL:
        return "holds no number, or may not be asked now";
    default:
        return strerror(errno);
    }
}
