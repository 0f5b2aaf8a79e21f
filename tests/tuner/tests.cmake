hone_test(tuner winner LINK hone_tuner)
hone_test(tuner families LINK hone_tuner)
hone_test(tuner strategy LINK hone_tuner)
hone_test(tuner guided LINK hone_tuner m)
find_package(ZLIB)
if(ZLIB_FOUND)
  hone_test(tuner recorded LINK hone_templates ZLIB::ZLIB m SOURCES ../benchmarks/recorded.c)
endif()
hone_test(tuner sweep LINK hone_tuner SOURCES tuner/fake_engine.c)
hone_test(tuner sweep_limits LINK hone_tuner SOURCES tuner/fake_engine.c)
hone_test(tuner sweep_round LINK hone_tuner SOURCES tuner/fake_engine.c)
hone_test(tuner sweep_routed LINK hone_tuner SOURCES tuner/fake_engine.c)
hone_test(tuner sweep_imported LINK hone_tuner SOURCES tuner/fake_engine.c)

# The same suite with many more kills, at any time.
hone_run(tuner sweep_kills test_tuner_sweep LABELS rel TIMEOUT 600 SET HONE_KILLS=${HONE_TEST_KILLS})

# Candidates that crash, hang, lie or lose the device; the run with a hundred of them is the slow one.
hone_test(tuner containment LINK hone_tuner)
add_dependencies(test_tuner_containment hone_emu hone-worker hone-prover)
hone_run(tuner containment_100 test_tuner_containment LABELS slow TIMEOUT 600 SET HONE_CONTAINMENT=100)
