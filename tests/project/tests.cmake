# What holds for the project as a whole: the include graph, the README's commands.
hone_test(project includes LINK hone_core)
