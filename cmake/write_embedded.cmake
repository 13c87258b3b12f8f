# Writes ${output}: a C++ source that defines ${name} as the text of ${input}. See whimbrel_embed.
file(READ ${input} text)
set(delimiter embedded)
string(FIND "${text}" ")${delimiter}\"" end)
if(NOT end EQUAL -1)
  message(FATAL_ERROR "${input}: got the end of a raw string, )${delimiter}\", expected none")
endif()
file(
  WRITE ${output}
  "#include \"${header}\"\n\n"
  "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\n"
  "namespace whimbrel::http {\n\n"
  "const std::string_view ${name} = R\"${delimiter}(${text})${delimiter}\";\n\n"
  "}  // namespace whimbrel::http\n"
)
