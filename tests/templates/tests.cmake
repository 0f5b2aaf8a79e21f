hone_test(templates expression LINK hone_templates)
hone_test(templates manifest LINK hone_templates SOURCES templates/fixture.c)
hone_test(templates space LINK hone_templates SOURCES templates/fixture.c)
