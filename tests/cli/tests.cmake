# The hone program from the outside.
set(cli_suite cli/program.c)
hone_test(cli usage LINK hone_core PkgConfig::JANSSON SOURCES ${cli_suite})
foreach(module usage)
  add_dependencies(test_cli_${module} hone hone-worker hone_emu)
endforeach()
