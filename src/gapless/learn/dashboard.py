"""What a person watches while a policy is trained: a table on a terminal, a line at each checkpoint elsewhere."""

from rich.table import Table

from gapless.learn.run import News, Run

UNITS = {"velocity_error": " m/s", "yaw_error": " rad/s", "distance": " m"}
"""Of what tasks offer to watch; other metrics have none."""


def dashboard(news: News, run: Run, seconds: float) -> Table:
    """Everything that is worth watching, on one screen. seconds: that an iteration takes."""
    progress = news.progress
    table = Table(title=f"{run.task} · {run.robot} · {'adr' if run.adr else run.preset}", title_style="bold", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    took = progress.collect + progress.update
    left = int(seconds * (run.settings.iterations - progress.iteration))
    for name, value in (
        ("iteration", f"{progress.iteration} of {run.settings.iterations}"),
        ("time left", f"{left // 60}:{left % 60:02d}"),
        ("steps/s", f"{progress.steps / took:,.0f}"),
        ("physics and inference, update", f"{progress.collect / took:.0%}, {progress.update / took:.0%}"),
        ("falls a minute", f"{60 * progress.terms['falls']:.2f}"),
        ("best on unseen robots", f"{news.best:.2f} at {news.best_iteration}" if news.best > float("-inf") else "not yet"),
        *_metrics(news),
        *([] if news.entropy is None else [("entropy of the ranges", f"{news.entropy:.2f} nats a parameter")]),
        ("reward per second", f"{progress.reward:.2f}"),
    ):
        table.add_row(name, value)
    table.add_section()
    for name, term in progress.terms.items():
        if name != "falls":
            table.add_row(f"  {name}", f"{term:+.3f}")
    return table


def line(news: News, run: Run) -> str:
    """The same in one line, at a checkpoint."""
    progress = news.progress
    speed, falls = progress.steps / (progress.collect + progress.update), 60 * progress.terms["falls"]
    wide = "" if news.entropy is None else f", ranges {news.entropy:.2f} nats a parameter"
    watched = "".join(f"{name} {value}, " for name, value in _metrics(news))
    return (
        f"{progress.iteration}/{run.settings.iterations}: reward {progress.reward:.2f}, unseen robots {news.unseen:.2f} "
        f"(best {news.best:.2f} at {news.best_iteration}), {watched}falls {falls:.2f} a minute, {speed:,.0f} steps/s{wide}"
    )


def _metrics(news: News) -> list[tuple[str, str]]:
    """What the task offers to watch, in words."""
    return [(name.replace("_", " "), f"{value:.3f}{UNITS.get(name, '')}") for name, value in news.progress.metrics.items()]
