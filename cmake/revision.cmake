# SPDX-License-Identifier: Apache-2.0
# Run at every build: writes OUTPUT with the revision of SOURCE, and only when it changed.
set(revision "unknown")
execute_process(
    COMMAND git -C "${SOURCE}" describe --always --dirty
    OUTPUT_VARIABLE described
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET
    RESULT_VARIABLE failed)
if(NOT failed AND described)
    set(revision "${described}")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define BELL_REVISION \"@revision@\"\n" @ONLY)
