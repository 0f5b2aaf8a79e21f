# The hone program from the outside; under the label rel: killed, interrupted, on damaged files.
set(cli_suite cli/program.c)
hone_test(cli usage LINK hone_core PkgConfig::JANSSON SOURCES ${cli_suite})
hone_test(cli emu LINK hone_core PkgConfig::JANSSON m SOURCES ${cli_suite} TIMEOUT 600)
hone_test(cli flow LINK hone_core PkgConfig::JANSSON SOURCES ${cli_suite} TIMEOUT 600)
hone_test(cli routing LINK hone_core PkgConfig::JANSSON SOURCES ${cli_suite} TIMEOUT 600)
hone_test(cli trouble LINK hone_core PkgConfig::JANSSON SOURCES ${cli_suite} LABELS rel TIMEOUT 900)
hone_test(cli kill LINK hone_core PkgConfig::JANSSON PkgConfig::SQLITE SOURCES ${cli_suite} LABELS rel TIMEOUT 1800
  SET HONE_KILLS=${HONE_TEST_KILLS})
# Files of gigabytes, though mostly holes.
hone_test(cli convert LINK hone_convert PkgConfig::JANSSON SOURCES ${cli_suite} cli/holes.c convert/build.c
  LABELS rel release-only TIMEOUT 600)
hone_test(cli convert_memory LINK hone_core PkgConfig::JANSSON SOURCES ${cli_suite} cli/holes.c LABELS rel release-only
  TIMEOUT 300)
hone_run(cli convert_memory_whole test_cli_convert_memory LABELS slow release-only TIMEOUT 600 SET HONE_WHOLE=1)
# Resumable: millions of candidates, ten minutes at a time.
hone_test(cli product LINK hone_core PkgConfig::JANSSON SOURCES ${cli_suite} LABELS slow TIMEOUT 7200)
foreach(module usage emu flow routing trouble kill convert convert_memory product)
  add_dependencies(test_cli_${module} hone hone-worker hone-prover hone_emu)
endforeach()
