# SPDX-License-Identifier: Apache-2.0
# C source -> the same lines without comments and without the text of string and character literals; an #include keeps
# its file name.  One output line an input line, so line numbers hold.
{
    line = $0
    if (!in_comment && line ~ /^[ \t]*#[ \t]*include/) {
        sub(/[ \t]*\/[\/*].*$/, "", line)
        print line
        next
    }
    out = ""
    n = length(line)
    for (i = 1; i <= n; i++) {
        c = substr(line, i, 1)
        two = substr(line, i, 2)
        if (in_comment) {
            if (two == "*/") { in_comment = 0; i++ }
            continue
        }
        if (quote != "") {
            if (c == "\\") { i++; continue }
            if (c == quote) { quote = ""; out = out c }
            continue
        }
        if (two == "/*") { in_comment = 1; i++; out = out " "; continue }
        if (two == "//") break
        if (c == "\"" || c == "'") quote = c
        out = out c
    }
    quote = ""
    print out
}
