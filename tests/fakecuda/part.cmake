# SPDX-License-Identifier: MIT
# Driver libraries without a GPU, each in a folder of its own for LD_LIBRARY_PATH: fakecuda/cuda has
# libcuda.so.1, fakecuda/old one without virtual memory management, fakecuda/nvml libnvidia-ml.so.1,
# fakecuda/none empty files of both names, which hide a machine's real ones.
function(unfrag_fake_library target folder soname)
    set(sources)
    foreach(source setup ${ARGN})
        list(APPEND sources fakecuda/${source}.c)
    endforeach()
    add_library(${target} MODULE ${sources})
    target_link_libraries(${target} PRIVATE unfrag_options unfrag)
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
    set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME ${soname}
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/fakecuda/${folder})
endfunction()
unfrag_fake_library(fake_driver cuda libcuda.so.1 order driver memory vmm stream kernels)
unfrag_fake_library(fake_driver_old old libcuda.so.1 order driver memory stream kernels)
unfrag_fake_library(fake_nvml nvml libnvidia-ml.so.1 nvml)
foreach(name cuda_driver_test cuda_probe_test cuda_test device_test nvml_test doctor_test)
    add_dependencies(${name} fake_driver fake_driver_old fake_nvml)
endforeach()
foreach(soname libcuda.so.1 libnvidia-ml.so.1)
    file(WRITE ${PROJECT_BINARY_DIR}/tests/fakecuda/none/${soname} "")
endforeach()
# cuda_header_test compares our declarations with cuda.h where there is one.
find_path(UNFRAG_CUDA_INCLUDE cuda.h PATHS /usr/local/cuda/include /opt/cuda/include)
if(UNFRAG_CUDA_INCLUDE)
    target_include_directories(cuda_header_test SYSTEM PRIVATE ${UNFRAG_CUDA_INCLUDE})
endif()
