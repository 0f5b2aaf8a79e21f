hone_test(runtime wire LINK hone_runtime)
hone_test(runtime jit_answer LINK hone_runtime)
hone_test(runtime jit LINK hone_runtime SOURCES runtime/jit_fixture.c LABELS unit threads)
hone_test(runtime flaws LINK hone_runtime SOURCES runtime/jit_fixture.c)
hone_test(runtime sandbox LINK hone_runtime SOURCES runtime/jit_fixture.c LABELS rel TIMEOUT 300)
hone_test(runtime default LINK hone_runtime SOURCES runtime/jit_fixture.c runtime/store_fixture.c TIMEOUT 900)
foreach(suite serving launch)
  hone_test(runtime ${suite} LINK hone_runtime SOURCES runtime/jit_fixture.c runtime/store_fixture.c runtime/serving_fixture.c
    LABELS unit threads)
endforeach()
foreach(suite checked checked_moe)
  hone_test(runtime ${suite} LINK hone_bench SOURCES runtime/checked_fixture.c runtime/jit_fixture.c runtime/store_fixture.c)
endforeach()
hone_test(runtime kept LINK hone_bench SOURCES runtime/jit_fixture.c runtime/store_fixture.c LABELS unit threads)
hone_test(runtime folded LINK hone_bench SOURCES core/fold_data.c runtime/jit_fixture.c runtime/store_fixture.c TIMEOUT 300)
# The experts of a rank, end to end; with every expert of the models' deployments under the slow label.
hone_test(runtime moe_layer LABELS unit release-only LINK hone_bench SOURCES runtime/moe_layer.c runtime/jit_fixture.c runtime/store_fixture.c TIMEOUT 600)
hone_run(runtime moe_layer_whole test_runtime_moe_layer LABELS slow TIMEOUT 3600 SET HONE_MOE_EP=8)
hone_test(runtime threads LINK hone_runtime SOURCES runtime/jit_fixture.c runtime/store_fixture.c LABELS unit threads)

# The installed package, and the example that serves from it.
add_executable(make_store runtime/make_store.c runtime/store_fixture.c)
target_link_libraries(make_store PRIVATE hone_runtime hone_options)
add_test(NAME runtime/package COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/runtime/package.sh ${CMAKE_BINARY_DIR}
  ${CMAKE_SOURCE_DIR} $<TARGET_FILE:make_store> ${CMAKE_C_COMPILER})
set_tests_properties(runtime/package PROPERTIES LABELS unit TIMEOUT 120)
