"""Three ways to record a program and to learn how it ended: the fixture `recorded`."""

from watching import Watch, wait_for

WAYS = ["run", "watch", "recover"]


class Ways:
    """recorded("run", *words) is the Run of a program, after its bundles have been written."""

    def __init__(self, oomrec, preload):
        self._oomrec, self._preload = oomrec, preload

    def __call__(self, way, *words, **options):
        return getattr(self, way)(*words, **options)

    def run(self, *words, **options):
        return self._oomrec("run", "--", *words, **options)

    def watch(self, *words, **options):
        watch = Watch(self._oomrec)
        run = self._preload(*words, **options)
        # Recordings of dead processes are removed once their bundles exist.
        wait_for(lambda: not list(self._preload.session_dir.rglob("*.session")))
        watch.stop()
        return run

    def recover(self, *words, **options):
        run = self._preload(*words, **options)
        self._oomrec("recover")
        return run
