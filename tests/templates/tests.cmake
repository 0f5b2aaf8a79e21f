hone_test(templates expression LINK hone_templates)
hone_test(templates manifest LINK hone_templates SOURCES templates/fixture.c)
hone_test(templates space LINK hone_templates SOURCES templates/fixture.c)

# Kernels: one config of each row here, many under the slow label.
hone_test(templates kernels LINK hone_runtime SOURCES templates/kernels.c TIMEOUT 300)
hone_test(templates mutants LINK hone_runtime SOURCES templates/kernels.c templates/mutants.c TIMEOUT 300)
add_test(NAME templates/kernels_wide COMMAND test_templates_kernels)
set_tests_properties(templates/kernels_wide PROPERTIES TIMEOUT 3600 LABELS slow ENVIRONMENT
  "HONE_SOURCE_DIR=${CMAKE_SOURCE_DIR};HONE_BINARY_DIR=${CMAKE_BINARY_DIR};HONE_KERNEL_DRAWS=32")

# Proof on emulated GPUs: one config of each row here, many under the slow label.
hone_test(templates proof LINK hone_bench SOURCES templates/kernels.c templates/mutants.c templates/proof.c TIMEOUT 600)
add_dependencies(test_templates_proof hone_emu)
add_test(NAME templates/proof_wide COMMAND test_templates_proof)
set_tests_properties(templates/proof_wide PROPERTIES TIMEOUT 7200 LABELS slow ENVIRONMENT
  "HONE_SOURCE_DIR=${CMAKE_SOURCE_DIR};HONE_BINARY_DIR=${CMAKE_BINARY_DIR};HONE_PROOF_DRAWS=32")
