# Runs an example and compares what it prints with what it is known to print.
#   cmake -DPROGRAM=path -DEXPECTED=path -P CompareOutput.cmake
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed RESULT_VARIABLE status)
file(READ ${EXPECTED} expected)
if(NOT status EQUAL 0 OR NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} ended with ${status} and printed\n${printed}\nand not\n${expected}")
endif()
