set(runtime_suite runtime/suite.c)
hone_test(runtime wire LINK hone_runtime SOURCES ${runtime_suite})
hone_test(runtime jit_answer LINK hone_runtime SOURCES ${runtime_suite})
hone_test(runtime jit LINK hone_runtime SOURCES ${runtime_suite} runtime/jit_fixture.c)
