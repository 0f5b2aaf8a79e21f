# What every target is built with: C11 with GNU extensions, hidden names, warnings as errors, sanitizers.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(HONE_SANITIZE "" CACHE STRING "comma-separated sanitizers, such as address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(hone_options INTERFACE)
target_include_directories(hone_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(hone_options INTERFACE _GNU_SOURCE)
target_compile_options(hone_options INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes -Wvla -Wpointer-arith
  -Wno-sign-conversion -Werror -fno-math-errno -ffp-contract=off>)
if(HONE_SANITIZE)
  target_compile_options(hone_options INTERFACE -fsanitize=${HONE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(hone_options INTERFACE -fsanitize=${HONE_SANITIZE})
endif()

# hone_floor(NAME folder-libraries...): an object collection of this folder's *.c, linked against the floors below.
# hone_floor(NAME FOLDERS folder... LINK folder-libraries...): the same with the *.c of folders within it.
function(hone_floor name)
  cmake_parse_arguments(PARSE_ARGV 1 F "" "" "FOLDERS;LINK")
  set(globs *.c)
  foreach(folder ${F_FOLDERS})
    list(APPEND globs ${folder}/*.c)
  endforeach()
  list(TRANSFORM globs PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${globs})
  add_library(hone_${name} STATIC ${sources})
  target_link_libraries(hone_${name} PUBLIC hone_options ${F_LINK} ${F_UNPARSED_ARGUMENTS})
endfunction()
