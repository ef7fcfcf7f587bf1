# SPDX-License-Identifier: Apache-2.0
#
# cmake -DSOURCE=DIR -DHEADER=FILE -P git_state.cmake: defines REGATTA_GIT in FILE as the state of the git repository DIR,
# "1a2b3c4" or "1a2b3c4-dirty", or as "" outside of a repository. It runs in every build, since a result says which source it
# comes from. It writes FILE only if the state has changed.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git describe --always --dirty --tags WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE state
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define REGATTA_GIT \"@state@\"\n" @ONLY)
