# What holds for the project as a whole: the include graph, every pair of values proved, the README's commands.
hone_test(project includes LINK hone_core)
hone_test(project pairs LINK hone_tuner SOURCES project/pairs.c LABELS rel release-only TIMEOUT 1200)
add_dependencies(test_project_pairs hone_emu hone-worker hone-prover)
# And of the indexer's scores.
hone_run(project pairs_all test_project_pairs LABELS slow TIMEOUT 14400 SET HONE_PROVE_ALL=1)
hone_test(project readme LINK PkgConfig::JANSSON SOURCES cli/program.c LABELS release-only TIMEOUT 1800)
