# SPDX-License-Identifier: Apache-2.0
# Prints a file with `text` replaced by `by` in the body of `name`; exits 3 unless it is there exactly once.
# usage: awk -v name=FUNCTION -f mutate.awk FILE, with MUTATE_TEXT and MUTATE_BY in the environment
BEGIN {
    text = ENVIRON["MUTATE_TEXT"]
    by = ENVIRON["MUTATE_BY"]
}
/^[A-Za-z]/ && index($0, " " name "(") { inside = 1 }
{
    line = $0
    out = ""
    while (inside && (at = index(line, text))) {
        found++
        out = out substr(line, 1, at - 1) by
        line = substr(line, at + length(text))
    }
    print out line
}
/^}/ { inside = 0 }
END {
    if (found != 1) exit 3
}
