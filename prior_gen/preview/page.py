"""One self-contained HTML page with all pictures, which needs no network."""

import base64
import html
from collections.abc import Sequence
from typing import Any

from prior_gen.preview.sample import Sample, missing_in_words, ranges_in_words
from prior_gen.preview.style import Picture
from puicl_config import counted

_CSS = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 54rem; padding: 1.2rem 1rem 3rem; background: #fff;
  color: #222; font: 16px/1.5 system-ui, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .4rem 0 .2rem; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .5rem; }
p, figcaption { max-width: 46rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 1rem 0;
  font-size: .93rem; }
dt { color: #666; }
dd { margin: 0; overflow-wrap: anywhere; }
.missing { border-left: 4px solid #d55e00; padding-left: .7rem; }
figure { margin: 0; }
.picture { overflow-x: auto; }
.picture img { display: block; width: 100%; height: auto; }
figcaption { font-size: .9rem; color: #444; margin-top: .5rem; }
.table { overflow-x: auto; margin-top: 1rem; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: #444; padding-bottom: .3rem; }
th, td { padding: .2rem .8rem .2rem 0; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 1px solid #999; font-weight: 600; }
.hint { display: none; color: #666; font-size: .85rem; }
@media (max-width: 40rem) {
  body { padding: .8rem .8rem 2rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .4rem; }
  .picture img { width: 36rem; max-width: none; }
  .hint { display: block; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { break-after: avoid; margin-top: 1.2rem; }
  figure, table { break-inside: avoid; }
  .picture, .table { overflow: visible; }
  .picture img { width: auto; min-width: 0; max-width: 100%; max-height: 20cm; margin: 0 auto; }
  .hint { display: none; }
}
"""


def build_page(sample: Sample, numbers: dict[str, Any], pictures: Sequence[Picture]) -> str:
    """HTML with inlined style and images; depends only on its arguments."""
    digest = numbers["plan_digest"]
    body = [
        "<h1>Preview of a prior</h1>",
        "<p>Synthetic positive-unlabeled tasks, as they lie in a folder of shards. Everything "
        "below is read from the shards; nothing was generated for it.</p>",
        _facts(sample, numbers),
        _missing(sample),
        '<p class="hint">Wide pictures scroll sideways.</p>',
    ]
    for picture in pictures:
        body.append(_section(picture))
        if picture.name == "difficulty":
            body.append(_difficulty_table(numbers["difficulty"]))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Preview of plan {digest[:16]}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _facts(sample: Sample, numbers: dict[str, Any]) -> str:
    prior = sample.prior
    tail = f", then a tail to stage {prior.total_stages}" if prior.tail_steps else ", no tail"
    facts = {
        "Plan": f"{numbers['plan_digest']} (split {numbers['split']})",
        "Stages of the plan": f"1-{prior.stages}{tail}",
        "Stages in the folder": ranges_in_words(numbers["stages"]),
        "Stages looked at": ranges_in_words(numbers["stages_sampled"]),
        "Parts looked at": f"{numbers['parts_sampled']:,} of {numbers['parts']:,}",
        "Sampled": f"{numbers['microbatches_sampled']:,} microbatches, "
        f"{numbers['tasks_sampled']:,} tasks; {numbers['tasks_scored']:,} of them scored",
        "Seed of the sampling": str(numbers["seed"]),
    }
    if numbers["slice"] is not None:
        facts["Slice"] = f"{numbers['slice']}; what is expected is of the whole plan"
    items = "\n".join(
        f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in facts.items()
    )
    return f"<dl>\n{items}\n</dl>"


def _missing(sample: Sample) -> str:
    if not sample.missing:
        return ""
    words = html.escape(missing_in_words(sample.missing))
    return (
        f'<p class="missing">The stages begun lack {counted(len(sample.missing), "part")}, which '
        f"cannot be shown: {words}.</p>"
    )


def _section(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode()
    return (
        f'<h2>{html.escape(picture.title)}</h2>\n<figure id="{picture.name}">\n'
        f'<div class="picture"><img alt="{html.escape(picture.alt)}" '
        f'src="data:image/png;base64,{data}"></div>\n'
        f"<figcaption>{html.escape(picture.caption)}</figcaption>\n</figure>"
    )


def _difficulty_table(difficulty: dict[str, Any]) -> str:
    rows = [(f"source {source}", facts) for source, facts in difficulty["by_source"].items()]
    rows += [
        (_stages(*facts["stages"]), {k: facts[k] for k in ("trees", "logistic")})
        for facts in difficulty["by_stages"]
    ]
    lines = "\n".join(
        f"<tr><td>{label}</td>{_cells(facts['trees'])}{_cells(facts['logistic'], False)}</tr>"
        for label, facts in rows
    )
    return (
        '<div class="table"><table>\n<caption>AUC on the unlabelled rows: mean, and quartiles '
        "about the median</caption>\n<thead><tr><th></th><th>tasks</th><th>trees, mean</th>"
        "<th>quartiles</th><th>logistic, mean</th><th>quartiles</th></tr></thead>\n"
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )


def _cells(summary: dict[str, Any] | None, count: bool = True) -> str:
    if summary is None:
        return ("<td>0</td>" if count else "") + "<td>-</td><td>-</td>"
    return (
        (f"<td>{summary['tasks']}</td>" if count else "")
        + f"<td>{summary['mean']:.3f}</td><td>{summary['lower_quartile']:.2f}, "
        f"{summary['median']:.2f}, {summary['upper_quartile']:.2f}</td>"
    )


def _stages(first: int, last: int) -> str:
    return f"stage {first}" if first == last else f"stages {first}-{last}"
