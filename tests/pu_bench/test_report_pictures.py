"""The report's pictures: where their dots, curves and names stand."""

import numpy as np
import pytest
from made_up_results import changed

from pu_bench.report import figures, figures_probability
from pu_bench.report.figures_probability import reliability
from pu_bench.report.results import load_results
from pu_bench.report.style import spread_apart


def test_reliability_is_summed_over_all_cells(results_folder):
    assert reliability(load_results(results_folder), "puicl")[9].tolist() == [320, 304, 160]
    assert reliability(load_results(results_folder), "empu")[9].tolist() == [260, 247, 130]


def test_names_in_a_picture_keep_their_distance_and_order():
    values = [0.5, 0.1, 0.5, 0.52]
    places = spread_apart(values, 0.1)
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(places)[order]) >= 0.1 - 1e-6).all()
    assert places[1] == 0.1


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were drawn, as Matplotlib has them."""
    kept = []
    for module in (figures, figures_probability):
        monkeypatch.setattr(module, "png_of", lambda figure: kept.append(figure) or b"")
    return kept


def test_dots_stand_beside_their_tasks_name(results_folder, drawn):
    results = changed(results_folder, auc=lambda t: 1 - t.auc)
    figures.dots_by_task(results)
    (axes,) = drawn[0].axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    (dots,) = [dots for dots in axes.collections if dots.get_label() == "PUICL"]
    told = {names[round(y)]: x for x, y in dots.get_offsets()}
    auc = results.by_task("auc").puicl
    assert told == {results.task_title(task): pytest.approx(auc[task]) for task in results.tasks}


def test_dots_stand_in_tasks_from_easy_to_hard(results_folder, drawn):
    results = changed(results_folder, auc=lambda t: 1 - t.auc)
    figures.dots_by_task(results)
    (axes,) = drawn[0].axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    means = results.by_task("auc").mean(axis=1).rename(results.task_title).to_dict()
    assert names == sorted(means, key=means.get, reverse=True) != list(means)
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first one is on top


def test_a_calibration_curve_is_the_share_of_positives_over_the_mean_score(results_folder, drawn):
    figures_probability.calibration(load_results(results_folder))
    for axes in drawn[0].axes[:4]:
        curve = axes.lines[1]
        assert (*curve.get_xdata(), *curve.get_ydata()) == pytest.approx((0.95, 0.5))


def test_times_stand_beside_the_means_of_the_summary_failures_and_all(results_folder, drawn):
    # EMPU failed wholly on the easiest task, and once elsewhere.
    results = changed(results_folder, seconds=lambda t: t.method.map(len).astype(float))
    figures.time_against_auc(results)
    told = {tuple(dots.get_offsets()[0]) for dots in drawn[0].axes[0].collections}
    names = ("puicl", "empu", "logistic", "oracle")
    expected = {(len(name), results.mean_and_sd(name, "auc")[0]) for name in names}
    assert sorted(told) == [pytest.approx(point) for point in sorted(expected)]
    (mean,) = (auc for seconds, auc in expected if seconds == len("empu"))
    assert mean == pytest.approx((0.5 + 0.64 + sum(0.805 - 0.02 * k for k in range(2, 8))) / 8)
