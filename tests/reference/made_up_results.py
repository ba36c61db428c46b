"""A finished benchmark of made-up cells."""

import json
from pathlib import Path

import pandas as pd

from pu_bench.data import TASKS
from pu_bench.report.results import load_results
from pu_bench.run.files import DETAILS, RESULTS, write_results
from pu_bench.run.metrics import METRICS
from pu_bench.run.runner import PROTOCOL

NAMES = {"puicl": "PUICL", "empu": "EMPU", "logistic": "logistic P vs U", "oracle": "Oracle"}
LEVEL = {"puicl": 0.9, "empu": 0.8, "logistic": 0.7, "oracle": 0.95}


def make_results(folder: Path, n_tasks: int = 8) -> Path:
    """Made-up cells: 8 tasks, 4 methods, 2 repeats; EMPU fails on one task, once elsewhere."""
    tasks = list(TASKS)[:n_tasks]
    records = []
    for place, task in enumerate(tasks):
        for method, level in LEVEL.items():
            for repeat in range(2):
                metrics = dict.fromkeys(METRICS, level - 0.02 * place + 0.01 * repeat)
                record = {"task": task, "method": method, "repeat": repeat, **metrics}
                record |= {"seconds": 0.5, "error": None, "collapsed": method == "logistic"}
                record |= {"n_labeled": 10, "n_unlabeled": 20, "n_features": 3, "pi": 0.5}
                record |= {"rows_seen": "0", "reliability": [[9, 20, 19.0, 10]]}
                if method == "empu" and (place == 0 or (place == 1 and repeat == 1)):
                    record |= dict.fromkeys((*METRICS, "collapsed", "reliability"))
                    record["error"] = "ValueError: <no> | luck"
                records.append(record)
    write_results(folder, records)
    methods = {
        name: {"title": title, "sees": ["labels"] if name == "oracle" else []}
        for name, title in NAMES.items()
    }
    run = {"protocol": PROTOCOL, "collection": "paper20", "methods": methods, "weights": {}}
    run["tables"] = {task: {"title": TASKS[task].title} for task in tasks}
    run["unavailable"] = {"rice": "no network"}
    (folder / "run.json").write_text(json.dumps(run))
    return folder


def without(folder, unwanted):
    """The folder, as if the cells of which `unwanted` is true had never been run."""
    for name in (RESULTS, DETAILS):
        table = pd.read_csv(folder / name)
        table[~unwanted(table)].to_csv(folder / name, index=False)
    return load_results(folder)


def changed(folder, **columns):
    """The folder with other columns in results.csv, each a function of the table."""
    table = pd.read_csv(folder / RESULTS)
    table.assign(**columns).to_csv(folder / RESULTS, index=False)
    return load_results(folder)
