/*
 * fake_nvtx.h: what a test can ask of the stand-in for a tool of NVTX (fake_nvtx.c).
 *
 * The tool is loaded by Genesis, by NVTX_INJECTION64_PATH; a test finds these functions in the library
 * that Genesis has loaded. The knob that is read from the environment when the tool is started:
 *
 *   FAKE_NVTX   refuse: the tool does not start; partial: it lacks a function; heapless: it refuses
 *               every heap, as compute-sanitizer does for mapped memory
 */
#ifndef GNI_TESTS_FAKE_NVTX_H
#define GNI_TESTS_FAKE_NVTX_H

/*
 * X(result, name, arguments): exported as fake_nvtx_NAME.
 *
 *   calls      what the tool was told, one line for each call: "heap BASE SIZE", "region BASE SIZE",
 *              "region_end BASE", "heap_end BASE"; forgotten after 64 KiB
 *   mistakes   calls that were wrong: a version or size of a structure, a region that is not in its
 *              heap, overlaps or is not known, no current context for a new heap, two calls at a time
 *   live       regions that are registered
 */
#define FAKE_NVTX_CONTROLS(X)      \
    X(const char *, calls, (void)) \
    X(int, mistakes, (void))       \
    X(int, live, (void))

#endif
