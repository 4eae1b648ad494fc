"""An extension in C without symbols and unwind information: of its functions nothing is known but
the file that they lie in."""

import tempfile
from pathlib import Path
from types import ModuleType

from _build import extension
from _clock import Clock

SOURCE = r"""
#include <Python.h>
static double grind(long n) {
    double x = 0.5; long i;
    for (i = 0; i < n; i++) x = x * 3.7 * (1.0 - x);
    return x;
}
static PyObject *work(PyObject *self, PyObject *arg) {
    return PyFloat_FromDouble(grind(PyLong_AsLong(arg)));
}
static PyObject *freely(PyObject *self, PyObject *arg) {
    double x; long n = PyLong_AsLong(arg);
    Py_BEGIN_ALLOW_THREADS
    x = grind(n);
    Py_END_ALLOW_THREADS
    return PyFloat_FromDouble(x);
}
static PyMethodDef methods[] = {{"work", work, METH_O, ""}, {"freely", freely, METH_O, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "grinder", 0, -1, methods};
PyMODINIT_FUNC PyInit_grinder(void) { return PyModule_Create(&module); }
"""


def main(clock: Clock, grinder: ModuleType) -> None:
    while clock.go_on():
        with clock.part("python"):
            [str(i).zfill(8) for i in range(40_000)]
        with clock.part("native"):
            grinder.work(4_000_000)
        with clock.part("native"):
            grinder.freely(2_000_000)
    clock.tell()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "grinder.c")
        source.write_text(SOURCE)
        clock = Clock()
        with clock.waiting():
            built = extension("grinder", source, "-s", "-fno-asynchronous-unwind-tables")
        main(clock, built)
