# hone_embed(TARGET SYMBOL FILE...): make the files' bytes part of TARGET.
# Defines `const embedded_file SYMBOL[]` (core/embedded.h), ended by a row whose name is NULL. A file's name is its
# path below the calling folder. The bytes are taken by the assembler, so that no other tool is needed.
function(hone_embed target symbol)
  set(assembly ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.S)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
  set(asm_text "    .section .rodata\n")
  set(externs "")
  set(rows "")
  set(index 0)
  foreach(file ${ARGN})
    file(RELATIVE_PATH name ${CMAKE_CURRENT_SOURCE_DIR} ${file})
    set(label ${symbol}_${index})
    string(APPEND asm_text "    .globl ${label}\n    .hidden ${label}\n    .globl ${label}_end\n    .hidden ${label}_end\n"
      "    .balign 16\n${label}:\n    .incbin \"${file}\"\n${label}_end:\n    .byte 0\n")
    string(APPEND externs "extern const char ${label}[], ${label}_end[];\n")
    string(APPEND rows "    {\"${name}\", ${label}, ${label}_end},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  string(APPEND asm_text "    .section .note.GNU-stack,\"\",@progbits\n")
  file(CONFIGURE OUTPUT ${assembly} CONTENT "${asm_text}" @ONLY)
  file(CONFIGURE OUTPUT ${table} CONTENT
    "#include \"core/embedded.h\"\n\n${externs}\nextern const embedded_file ${symbol}[];\nconst embedded_file ${symbol}[] = {\n${rows}    {0, 0, 0},\n};\n" @ONLY)
  set_source_files_properties(${assembly} PROPERTIES OBJECT_DEPENDS "${ARGN}")
  target_sources(${target} PRIVATE ${assembly} ${table})
endfunction()
