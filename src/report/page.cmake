# SPDX-License-Identifier: MIT
# The report's page, compiled in: template, style, scripts in the order in which they run.
set(UNFRAG_PAGE_ASSETS
    src/report/page/page.html
    vendor/uplot/LICENSE
    vendor/uplot/uPlot.min.css
    src/report/page/page.css
    vendor/uplot/uPlot.iife.min.js
    src/report/page/text.js
    src/report/page/data.js
    src/report/page/theme.js
    src/report/page/view.js
    src/report/page/timeline.js
    src/report/page/raster.js
    src/report/page/paint.js
    src/report/page/map.js
    src/report/page/moment.js
    src/report/page/explorer.js
    src/report/page/tables.js
    src/report/page/compare.js
    src/report/page/main.js)
list(TRANSFORM UNFRAG_PAGE_ASSETS PREPEND ${PROJECT_SOURCE_DIR}/)
set(UNFRAG_PAGE_SOURCE ${PROJECT_BINARY_DIR}/report_assets.c)
add_custom_command(OUTPUT ${UNFRAG_PAGE_SOURCE}
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${UNFRAG_PAGE_SOURCE}" "-DINPUTS=${UNFRAG_PAGE_ASSETS}"
        -P ${PROJECT_SOURCE_DIR}/src/report/assets.cmake
    DEPENDS ${UNFRAG_PAGE_ASSETS} ${PROJECT_SOURCE_DIR}/src/report/assets.cmake
    COMMENT "Packing the report's page" VERBATIM)
