// Counts the objects that Python's garbage collector tracks, by type: what can be known of a Python
// heap that was there before the recorder.
//
// The interpreter's main thread does it, where it runs pending calls: between two instructions of
// Python code, as for a signal's handler. No other moment is safe: a thread that has released the
// interpreter's lock may hold one of a C library for which the lock's next owner waits.
#pragma once
