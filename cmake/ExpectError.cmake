# cmake -Dbuild=<folder> -Dtarget=<target> -Derror=<regex> [-Dlines=<n>] -P ExpectError.cmake
#
# The target must not build, and what is printed must match; at most n lines of it, if n is given.
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${build}" --target "${target}"
                RESULT_VARIABLE result OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
message("${printed}")
if(result EQUAL 0)
  message(FATAL_ERROR "it compiles")
endif()
if(NOT printed MATCHES "${error}")
  message(FATAL_ERROR "nothing printed matches: ${error}")
endif()
if(lines)
  string(REGEX MATCHALL "\n" ends "${printed}")
  list(LENGTH ends count)
  if(count GREATER lines)
    message(FATAL_ERROR "${count} lines are printed, more than ${lines}")
  endif()
endif()
