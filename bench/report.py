# How bench/flat, bench/fair and bench/punctual show what they found besides their tables: rows of JSON, and a chart. It is
# drawn by matplotlib, which is kept well, draws honest logarithmic axes and writes SVG; only those who ask for a chart need it.

import argparse
import json
import pathlib
import sys
from dataclasses import dataclass, field

COLOURS = {"jobq": "tab:blue", "plain": "tab:orange", "visible": "tab:green"}


def writable(text):
    """A file's path, as an argument: found out at once, not after an hour of measuring."""
    path = pathlib.Path(text)
    if not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    return path


def drawable(text):
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise argparse.ArgumentTypeError("a chart needs matplotlib: dev/setup python3-matplotlib") from None
    return writable(text)


def add_arguments(parser):
    parser.add_argument("--json", type=writable, metavar="FILE", help="write each figure of each round, one JSON object a line")
    parser.add_argument("--chart", type=drawable, metavar="FILE", help="draw the figures as an SVG")
    parser.add_argument("--use", metavar="DIR",
                        help="take the server that runs in this folder of dev/server, and leave it running")


def progress(text):
    """What has been done so far, for whoever watches."""
    print(f"{pathlib.Path(sys.argv[0]).name}: {text}", file=sys.stderr, flush=True)


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@dataclass
class Line:
    """One line of a panel. Dashed is the less important one of two."""
    name: str
    xs: list
    ys: list
    dashed: bool = False
    colour: str = None


@dataclass
class Panel:
    title: str
    x: str
    y: str
    log: bool = False
    log_x: bool = False
    lines: list = field(default_factory=list)

    def drawn(self):
        """The lines of which something is known."""
        return [line for line in self.lines if any(y is not None for y in line.ys)]


def draw(path, rows):
    """An SVG of rows of panels; a panel of which nothing is known stays away."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": path.name, "font.size": 9})
    from matplotlib import pyplot
    rows = [[panel for panel in panels if panel.drawn()] for panels in rows]
    columns = max(map(len, rows))
    figure, grid = pyplot.subplots(len(rows), columns, squeeze=False, figsize=(5 * columns, 3.6 * len(rows)))
    for panels, axes in zip(rows, grid):
        for axis in axes[len(panels):]:
            axis.set_axis_off()
        for panel, axis in zip(panels, axes):
            draw_panel(axis, panel)
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})


def draw_panel(axis, panel):
    for line in panel.drawn():
        gaps = [float("nan") if y is None else y for y in line.ys]
        axis.plot(line.xs, gaps, label=line.name, linestyle="--" if line.dashed else "-", marker=".",
                  color=line.colour or COLOURS.get(line.name.split()[0]))
    axis.set_title(panel.title)
    axis.set(xlabel=panel.x, ylabel=panel.y)
    scale(axis.set_xscale, axis.xaxis, panel.log_x)
    scale(axis.set_yscale, axis.yaxis, panel.log)
    axis.grid(True, which="both", linewidth=0.3)
    axis.legend()


def scale(set_scale, axis, log):
    """Times differ by factors; all else begins at 0."""
    if log:
        set_scale("log")
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(lambda x, _: f"{x:g}" if has_room(axis, x) else "")
    else:
        axis.axes.set(**{f"{axis.axis_name}lim": (0, None)})


def has_room(axis, x):
    """Whether a number between two powers of ten gets a label: each in one decade, 2 and 5 in several."""
    low, high = axis.get_view_interval()
    return high < 10 * low or f"{x:e}"[0] in "25"
