# Lets CMake use ROS 2 as installed from PyPI. Pass it with -DCMAKE_PROJECT_INCLUDE; an ordinary ROS needs none of it.

# The wheels' exported targets name include directories of the machine on which they were built, and CMake refuses
# include directories that do not exist.
function(lift_ros_drop_missing_include_directories)
  get_property(targets DIRECTORY "${CMAKE_SOURCE_DIR}" PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(directories "${target}" INTERFACE_INCLUDE_DIRECTORIES)
    set(kept "")
    foreach(directory IN LISTS directories)
      if(directory AND (NOT IS_ABSOLUTE "${directory}" OR EXISTS "${directory}"))
        list(APPEND kept "${directory}")
      endif()
    endforeach()
    set_property(TARGET "${target}" PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${kept}")
  endforeach()
endfunction()

# An environment inside the checkout puts numpy's headers below the source directory, where CMake lets no exported
# target point: whoever uses the installed package finds numpy for itself.
function(lift_ros_keep_source_directories_private)
  get_property(targets DIRECTORY "${CMAKE_SOURCE_DIR}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(directories "${target}" INTERFACE_INCLUDE_DIRECTORIES)
    set(kept "")
    foreach(directory IN LISTS directories)
      cmake_path(IS_PREFIX CMAKE_SOURCE_DIR "${directory}" inside)
      if(inside)
        list(APPEND kept "$<BUILD_INTERFACE:${directory}>")
      elseif(directory)
        list(APPEND kept "${directory}")
      endif()
    endforeach()
    set_property(TARGET "${target}" PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${kept}")
  endforeach()
endfunction()

# At the end of the configure step, when all targets are known.
cmake_language(DEFER CALL lift_ros_drop_missing_include_directories)
cmake_language(DEFER CALL lift_ros_keep_source_directories_private)
