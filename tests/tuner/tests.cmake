hone_test(tuner winner LINK hone_tuner)
hone_test(tuner strategy LINK hone_tuner)
hone_test(tuner sweep LINK hone_tuner)

# The same suite with a hundred kills at any time.
add_test(NAME tuner/sweep_kills COMMAND test_tuner_sweep)
set_tests_properties(tuner/sweep_kills PROPERTIES TIMEOUT 600 LABELS rel ENVIRONMENT
  "HONE_SOURCE_DIR=${CMAKE_SOURCE_DIR};HONE_BINARY_DIR=${CMAKE_BINARY_DIR};HONE_KILLS=100")
