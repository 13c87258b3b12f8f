# cmake -DCARGO=… -DMANIFEST=… -DTARGET_DIR=… -DLIBRARY=… -P build_textkit.cmake
# Builds the crate and copies its library to LIBRARY. Clones share TARGET_DIR, and the last one to
# build owns the library there: hence the lock around both steps.
file(MAKE_DIRECTORY ${TARGET_DIR})
file(LOCK ${TARGET_DIR}/whimbrel.lock GUARD PROCESS TIMEOUT 3600)
set(cargo ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${TARGET_DIR} ${CARGO})
# Cargo asks whether a source is newer than the library: one of this clone may well be older than
# what another clone has built, and another text.
execute_process(
  COMMAND ${cargo} clean --quiet --release --locked --package textkit --manifest-path ${MANIFEST}
  COMMAND_ERROR_IS_FATAL ANY
)
execute_process(
  COMMAND ${cargo} build --release --locked --manifest-path ${MANIFEST}
  COMMAND_ERROR_IS_FATAL ANY
)
get_filename_component(folder ${LIBRARY} DIRECTORY)
file(COPY ${TARGET_DIR}/release/libtextkit.a DESTINATION ${folder})
# A copy keeps the library's time, which may be older than the sources'.
file(TOUCH ${LIBRARY})
