hone_test(bench verify LINK hone_bench hone_core SOURCES bench/naive.c)
hone_test(bench reference LINK hone_bench hone_core SOURCES bench/naive.c)
hone_test(bench stats LINK hone_bench hone_models hone_core)
