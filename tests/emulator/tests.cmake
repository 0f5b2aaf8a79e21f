hone_test(emulator tensor LINK hone_emulator hone_core SOURCES emulator/tensor_cases.c)
hone_test(emulator tensor_model LINK hone_emulator hone_core SOURCES emulator/tensor_cases.c)
# The same program over 100,000 elements.
hone_run(emulator tensor_model_full test_emulator_tensor_model LABELS slow TIMEOUT 1800 SET HONE_TENSOR_CASES=100000)
hone_test(emulator memory LINK hone_emulator hone_core)

# The driver as a program loads it: from the built library, by name.
set(labels_of_shim_memory unit threads)
foreach(module shim shim_module shim_launch shim_arithmetic shim_cluster shim_budget shim_memory shim_occupancy)
  hone_test(emulator ${module} LABELS ${labels_of_${module}} LINK hone_core hone_cuda_headers Threads::Threads ${CMAKE_DL_LIBS} SOURCES emulator/shim_driver.c)
  target_compile_definitions(test_emulator_${module} PRIVATE HONE_EMU_FILE="$<TARGET_FILE:hone_emu>")
  add_dependencies(test_emulator_${module} hone_emu)
endforeach()

# The activity API, as a timer opens it.
set(labels_of_cupti_calls unit threads)
foreach(module cupti cupti_calls)
  hone_test(emulator ${module} LABELS ${labels_of_${module}} LINK hone_core hone_cuda_headers Threads::Threads ${CMAKE_DL_LIBS}
    SOURCES emulator/shim_driver.c emulator/cupti_client.c)
  target_compile_definitions(test_emulator_${module} PRIVATE HONE_EMU_FILE="$<TARGET_FILE:hone_emu>")
  add_dependencies(test_emulator_${module} hone_emu)
endforeach()

# Whole kernels, compiled by NVRTC and run through the driver; then each with one mistake, which takes a minute.
set(labels_of_mutants rel)
foreach(module hopper mutants)
  hone_test(emulator ${module} LABELS ${labels_of_${module}} TIMEOUT 300 LINK hone_emulator hone_core hone_cuda_headers ${CMAKE_DL_LIBS}
    SOURCES emulator/hopper_bench.c emulator/hopper_cases.c emulator/shim_driver.c emulator/ptx_bench.c)
  target_compile_definitions(test_emulator_${module} PRIVATE HONE_EMU_FILE="$<TARGET_FILE:hone_emu>")
  add_dependencies(test_emulator_${module} hone_emu)
endforeach()

# PTX and the machine: without the driver, straight against the emulator's own functions.
foreach(module cluster ptx_kernels exec_alu exec_cvt exec_warp exec_random)
  hone_test(emulator ${module} LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c)
endforeach()
# Approximate functions; integer forms and exact ones of floats, against references of their own.
hone_test(emulator exec_approx LINK hone_emulator hone_core ${CMAKE_DL_LIBS} m SOURCES emulator/ptx_bench.c)
hone_test(emulator exec_integer LINK hone_emulator hone_core ${CMAKE_DL_LIBS} m SOURCES emulator/ptx_bench.c emulator/form_bench.c
  emulator/integer_forms.c emulator/integer_arithmetic.c emulator/integer_bits.c emulator/integer_cvt.c)
hone_test(emulator exec_float LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c emulator/form_bench.c
  emulator/float_forms.c emulator/float_reference.c)
foreach(module ptx_forms form_runs)
  hone_test(emulator ${module} LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c emulator/form_operands.c)
endforeach()
# Kernels that break a rule, and their twins.
foreach(module race race_engines sanitizers ptx_faults)
  hone_test(emulator ${module} LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c emulator/fault_case.c)
endforeach()
# Launches on several host threads.
hone_test(emulator threads LABELS unit threads LINK hone_emulator hone_core Threads::Threads ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c)
hone_test(emulator wgmma LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c emulator/wgmma_case.c)
# What the units keep and add at once, by hand.
hone_test(emulator tensor_golden LINK hone_emulator hone_core ${CMAKE_DL_LIBS} m SOURCES emulator/ptx_bench.c emulator/wgmma_case.c emulator/unit_bench.c)
hone_test(emulator tensor_counts LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c emulator/wgmma_case.c)
# One element at a time; then the same program over all of them.
hone_test(emulator wgmma_one_hot LINK hone_emulator hone_core ${CMAKE_DL_LIBS} m SOURCES emulator/ptx_bench.c emulator/wgmma_case.c)
hone_run(emulator wgmma_one_hot_full test_emulator_wgmma_one_hot LABELS slow TIMEOUT 900 SET HONE_WGMMA_STEP=1)
# What a warpgroup shares; what a warp does as one.
foreach(module wgmma_flight wgmma_group alike dependent)
  hone_test(emulator ${module} LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c)
endforeach()
# Mbarriers and bulk copies.
foreach(module mbarrier bulk async_forms pipeline)
  hone_test(emulator ${module} LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c)
endforeach()
target_compile_definitions(test_emulator_pipeline PRIVATE HONE_TEST_KERNELS="${CMAKE_CURRENT_SOURCE_DIR}/emulator/kernels")

# Forms: matrices, what is seldom used, calls.
foreach(module exec_matrix mma_tf32 exec_double exec_rare calls ptx_module)
  hone_test(emulator ${module} LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c)
endforeach()
hone_test(emulator block_scale LINK hone_emulator hone_core)
hone_run(emulator block_scale_full test_emulator_block_scale LABELS slow TIMEOUT 900 SET HONE_TENSOR_CASES=100000)
# The toolkit's headers include others that the vendor's wheels have not; core's tests look whether they compile.
if(HONE_HAVE_TOOLKIT_FP8)
  hone_test(emulator exec_narrow LINK hone_emulator hone_core SOURCES emulator/toolkit_narrow.c)
  target_link_libraries(test_emulator_exec_narrow PRIVATE hone_cuda_headers)
  set_source_files_properties(emulator/toolkit_narrow.c PROPERTIES COMPILE_OPTIONS "-Wno-conversion;-Wno-pedantic")
endif()
target_sources(test_emulator_ptx_forms PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/ptx_target.c)

hone_test(emulator tensor_map LINK hone_core hone_cuda_headers Threads::Threads ${CMAKE_DL_LIBS}
  SOURCES emulator/shim_driver.c emulator/tensor_map_rules.c)
target_compile_definitions(test_emulator_tensor_map PRIVATE HONE_EMU_FILE="$<TARGET_FILE:hone_emu>")
add_dependencies(test_emulator_tensor_map hone_emu)

# Boxes of tensors, and the same over more of them.
hone_test(emulator tensor_copy LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c emulator/tensor_bench.c)
foreach(module tensor_faults tensor_use)
  hone_test(emulator ${module} LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c)
endforeach()
hone_run(emulator tensor_copy_full test_emulator_tensor_copy LABELS slow TIMEOUT 900 SET HONE_TENSOR_CASES=20000)
foreach(module counters profile)
  hone_test(emulator ${module} LINK hone_emulator hone_core ${CMAKE_DL_LIBS} m SOURCES emulator/ptx_bench.c emulator/counters_bench.c)
endforeach()

# Tensor units have three arithmetics. Suites above run machines in `exact` and drivers in `hw`; whatever multiplies runs
# again in the other one.
foreach(module ptx_kernels race_engines sanitizers wgmma_one_hot wgmma_flight wgmma_group pipeline exec_matrix counters)
  hone_run(emulator ${module}_hw test_emulator_${module} LABELS unit release-only SET HONE_EMU_ARITHMETIC=hw)
endforeach()
hone_run(emulator hopper_exact test_emulator_hopper LABELS slow TIMEOUT 600 SET HONE_EMU_ARITHMETIC=exact)
hone_run(emulator mutants_exact test_emulator_mutants LABELS slow TIMEOUT 1800 SET HONE_EMU_ARITHMETIC=exact)
